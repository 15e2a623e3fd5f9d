"""Writes the embedding tables of a run as text in fairseq's format, for another program or another run's `model.embedding_path`.

`python launch/dump_embeddings.py --help` says how; `python -m one_layer dump_embeddings` is the same, from any folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from one_layer.__main__ import run

if __name__ == "__main__":
    sys.argv.insert(1, Path(__file__).stem)
    run()
