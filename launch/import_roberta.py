"""Converts a RoBERTa in Hugging Face's format into a run folder.

`python launch/import_roberta.py --help` says how; `python -m one_layer import_roberta` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
