"""Tables and figures from the folders of runs: one page, pictures and points, without JAX.

`reading` reads the files of runs, which `shapes` checks, `points` groups the scores that can be compared,
and `comparable` says which curves can be. `figures`, `curves` and `sizes` choose and draw the pictures by `drawing`, with the names of
`labels` and `naming`, `tables` puts our numbers beside the papers', `claims` compares the papers' claims with ours,
`answers` says what the first screen says, `runs` shows all runs and those that have not finished, `page` makes
the page, and `writing` writes the folder. `differences` compares two runs.
"""
