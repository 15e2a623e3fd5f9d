"""Compiles a config's training step for accelerators that are not here, and says what it needs there.

`python launch/compile.py --help` says how; `python -m one_layer compile` is the same, from any folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from one_layer.__main__ import run

if __name__ == "__main__":
    sys.argv.insert(1, Path(__file__).stem)
    run()
