"""Compares two folders of runs, run by run: test scores, validation losses, mask bits in common, and seconds of training.

`python launch/compare.py --help` says how; `python -m one_layer compare` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
