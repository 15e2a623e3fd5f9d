"""The command of one_layer; `python -m one_layer` is the same, from any folder."""

from one_layer.__main__ import run

if __name__ == "__main__":
    run()
