"""Sweeps: many runs of one config, which `plan` makes. `claim` guards their folder, and `queue` works through them.

`jobs`, `populations` and `slurm` start runs, and `scores` shows them. Nothing here imports JAX to plan and to show.
"""
