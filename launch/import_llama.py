"""Converts a Llama or a GPT-2 in Hugging Face's format into a run folder, whose masks over its weights can be trained.

`python launch/import_llama.py --help` says how; `python -m one_layer import_llama` is the same, from any folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from one_layer.__main__ import run

if __name__ == "__main__":
    sys.argv.insert(1, Path(__file__).stem)
    run()
