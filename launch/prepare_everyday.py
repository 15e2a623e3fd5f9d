"""Puts everyday sentences and captions together as training text, English and German.

`python launch/prepare_everyday.py --help` says how; `python -m one_layer prepare_everyday` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
