"""The one exception that stands for a user's mistake."""


class UserError(ValueError):
    """Input that the user can mend: the message names the value, what is accepted and what to do.

    `main.py` prints the message alone and exits with code 2; in a library call it is an ordinary `ValueError`.
    """
