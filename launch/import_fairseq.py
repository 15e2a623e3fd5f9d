"""Converts a fairseq checkpoint into a run folder, or a run folder into a fairseq checkpoint. Needs torch (requirements-torch.txt).

`python launch/import_fairseq.py --help` says how; `python -m one_layer import_fairseq` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
