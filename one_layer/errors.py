"""The one exception that stands for a user's mistake, and what its messages are made with."""


class UserError(ValueError):
    """Input that the user can mend: the message names the value, what is accepted and what to do.

    `main.py` prints the message alone and exits with code 2; in a library call it is an ordinary `ValueError`.
    """


def counted(number: int, noun: str) -> str:
    """A number of things, for people: `1 column`, `2,000 columns`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
