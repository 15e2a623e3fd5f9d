"""Prepares IWSLT14 German-English from the official archive as training text, as the literature does.

`python launch/prepare_iwslt14.py --help` says how; `python -m one_layer prepare_iwslt14` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
