"""The keys of a config on the command line: `--config.a.b=VALUE`."""

import re
from collections.abc import Sequence
from typing import Any

from absl import flags
from ml_collections import ConfigDict, config_flags

from one_layer.runs.records import flatten, refuse_unknown
from one_layer.system.errors import UserError

_KINDS = {  # how the parsers of flags tell of a value that is none of this kind
    ": invalid literal for int()": "a whole number",
    ": could not convert string to float": "a number",
    ": ('Non-boolean argument": "True or False",
}


def keys_given(words: Sequence[str]) -> list[str]:
    """The dotted names of the keys that command-line words give."""
    return [key[1] for word in words if (key := re.match(r"--?config\.([^=]+)", word))]


def override(config: ConfigDict, words: Sequence[str]) -> dict[str, Any]:
    """Changes `config` by command-line words. Returns the values that they give, by dotted names, with the types of the config.

    Raises: UserError for any other word, an unknown key, and a value of another type.
    """
    for word in words:
        if word.startswith("--") and not keys_given([word]):
            raise UserError(f"{word.partition('=')[0]} is unknown; --help tells of all options")
    refuse_unknown("", keys_given(words), set(flatten(config.to_dict())))
    parsed = flags.FlagValues()
    argv = ["", *words]
    try:
        config_flags.DEFINE_config_dict("config", config, flag_values=parsed, sys_argv=argv)
        rest = parsed(argv)[1:]
        values = dict(config_flags.get_override_values(parsed["config"]))
    except (flags.Error, AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(_sentence(str(error))) from None
    if rest:
        raise UserError(f"unexpected argument {rest[0]!r}; give every option as --name=value")
    return values


def _sentence(text: str) -> str:
    """What absl and ml_collections say of a value, in one line."""
    for told, kind in _KINDS.items():
        flag, found, _ = text.partition(told)
        if found:
            return f"{flag.removeprefix('flag ')}: it takes {kind}"
    if missing := re.fullmatch(r"Missing value for flag (\S+)", text):
        return f"{missing[1]} has no value; give it as {missing[1]}=VALUE"
    return "; ".join(line.strip() for line in text.split("\n") if line.strip())
