"""Runs a sweep of a config: one run after another, or several at a time, on this machine or on a SLURM cluster.

`python launch/sweep.py --help` says how; `python -m one_layer sweep` is the same, from any folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from one_layer.__main__ import run

if __name__ == "__main__":
    sys.argv.insert(1, Path(__file__).stem)
    run()
