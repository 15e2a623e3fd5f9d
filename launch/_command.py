"""Runs the command of one_layer that has the name of a script in this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import one_layer.__main__


def run() -> None:
    """Runs the command; its words are those of the script."""
    sys.argv.insert(1, Path(sys.argv[0]).stem)
    one_layer.__main__.run()
