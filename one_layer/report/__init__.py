"""Tables and figures from the folders of runs: one page, pictures and points, without JAX.

`reading` reads the files of runs, `points` groups scores that can be compared, `figures` and `convergence` choose and draw the pictures,
`published` has the papers' numbers, `tables` puts ours beside them, `claims` compares the papers' claims with ours, and `writing` writes
the folder.
"""
