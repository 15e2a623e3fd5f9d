"""The keys of a config on the command line of a command that is no mode: `--config.a.b=VALUE`, as the modes take them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from absl import flags
from ml_collections import ConfigDict, config_flags

from one_layer.cli.command import sentence
from one_layer.runs.records import flatten, refuse_unknown
from one_layer.system.errors import UserError


def keys_given(words: Sequence[str]) -> list[str]:
    """The dotted names of the keys that command-line words give."""
    return [key[1] for word in words if (key := re.match(r"--?config\.([^=]+)", word))]


def override(config: ConfigDict, words: Sequence[str]) -> dict[str, Any]:
    """Changes `config` by command-line words. Returns the values that they give, by dotted names, with the types of the config.

    Raises: UserError for any other word, an unknown key, and a value of another type.
    """
    refuse_unknown("", keys_given(words), set(flatten(config.to_dict())))
    parsed = flags.FlagValues()
    argv = ["", *words]
    try:
        config_flags.DEFINE_config_dict("config", config, flag_values=parsed, sys_argv=argv)
        rest = parsed(argv)[1:]
        values = dict(config_flags.get_override_values(parsed["config"]))
    except (flags.Error, AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(sentence(str(error))) from None
    if rest:
        raise UserError(f"unexpected argument {rest[0]!r}; give every option as --name=value")
    return values
