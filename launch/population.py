"""Trains some runs of a sweep in one program. `launch/sweep.py --vmap` starts it; it reads their configs from sweep.json.

`python launch/population.py --help` says how; `python -m one_layer population` is the same, from any folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from one_layer.__main__ import run

if __name__ == "__main__":
    sys.argv.insert(1, Path(__file__).stem)
    run()
