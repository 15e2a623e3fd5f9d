"""The same as `python main.py sweep`."""

from _command import run

if __name__ == "__main__":
    run()
