"""Runs a sweep of a config: one run after another, or several at a time, on this machine or on a SLURM cluster.

`python launch/sweep.py --help` says how; `python -m one_layer sweep` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
