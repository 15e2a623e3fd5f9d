"""Compares how fast runs converge: AUCC over seconds, updates and operations, and what is saved until the baseline's best score.

`python launch/convergence.py --help` says how; `python -m one_layer convergence` is the same, from any folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from one_layer.__main__ import run

if __name__ == "__main__":
    sys.argv.insert(1, Path(__file__).stem)
    run()
