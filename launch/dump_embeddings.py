"""Writes the embedding tables of a run as text in fairseq's format, for another program or another run's `model.embedding_path`.

`python launch/dump_embeddings.py --help` says how; `python -m one_layer dump_embeddings` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
