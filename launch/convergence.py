"""Compares how fast runs converge: AUCC over seconds, updates and operations, and what is saved until the baseline's best score.

`python launch/convergence.py --help` says how; `python -m one_layer convergence` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
