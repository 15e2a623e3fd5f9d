"""Prepares WMT14 English-German from statmt.org's archives, or from TFDS, as training text, as the literature does.

`python launch/prepare_wmt14.py --help` says how; `python -m one_layer prepare_wmt14` is the same, from any folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from one_layer.__main__ import run

if __name__ == "__main__":
    sys.argv.insert(1, Path(__file__).stem)
    run()
