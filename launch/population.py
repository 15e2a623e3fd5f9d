"""Trains some runs of a sweep in one program. `launch/sweep.py --vmap` starts it; it reads their configs from sweep.json.

`python launch/population.py --help` says how; `python -m one_layer population` is the same, from any folder.
"""

from _command import run

if __name__ == "__main__":
    run()
