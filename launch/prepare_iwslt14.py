"""The same as `python main.py prepare_iwslt14`."""

from _command import run

if __name__ == "__main__":
    run()
