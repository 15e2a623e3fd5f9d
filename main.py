"""The command of one_layer; `python -m one_layer` is the same, from any folder."""

import sys

from absl import flags

import one_layer.__main__ as command
from one_layer.__main__ import run

if __name__ == "__main__":
    sys.modules["__main__"].__doc__ = command.__doc__  # what --help prints first
    flags.adopt_module_key_flags(command)
    run()
