"""Prepares WMT14 English-German from statmt.org's archives, or from TFDS, as training text, as the literature does.

`python launch/prepare_wmt14.py --help` says how; `python -m one_layer prepare_wmt14` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
