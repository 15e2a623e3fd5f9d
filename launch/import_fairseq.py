"""Converts a fairseq checkpoint into a run folder, or a run folder into a fairseq checkpoint. Needs torch (requirements-torch.txt).

`python launch/import_fairseq.py --help` says how; `python -m one_layer import_fairseq` is the same, from any folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from one_layer.__main__ import run

if __name__ == "__main__":
    sys.argv.insert(1, Path(__file__).stem)
    run()
