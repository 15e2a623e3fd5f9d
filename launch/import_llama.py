"""Converts a Llama or a GPT-2 in Hugging Face's format into a run folder, whose masks over its weights can be trained.

`python launch/import_llama.py --help` says how; `python -m one_layer import_llama` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
