"""The same as `python main.py import_llama`."""

from _command import run

if __name__ == "__main__":
    run()
