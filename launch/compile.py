"""Compiles a config's training step for accelerators that are not here, and says what it needs there.

`python launch/compile.py --help` says how; `python -m one_layer compile` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
