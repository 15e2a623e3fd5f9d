"""The tasks that models are trained for, with one folder for each: everything specific to a task is in its folder.

`TASKS` has the tasks by name. The rest of the program uses a task only through the class `one_layer.tasks.protocol.Task`.
"""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import TYPE_CHECKING

from one_layer.system.errors import UserError
from one_layer.tasks.known import KNOWN

if TYPE_CHECKING:
    from one_layer.tasks.protocol import Task


class _Tasks(UserDict[str, "Task"]):
    """The tasks by name. A task is imported when it is asked for: a command with a ticket needs one of them."""

    def __getitem__(self, name: str) -> Task:
        if self.data[name] is None:
            module, _, kind = KNOWN[name][0].rpartition(".")
            self.data[name] = getattr(import_module(f"one_layer.tasks.{module}"), kind)()
        return self.data[name]


TASKS = _Tasks(dict.fromkeys(KNOWN))  # type: ignore[arg-type]  # None until it is imported


def task_named(name: object) -> Task:
    """The task with this name. Raises: UserError for a name that is not in TASKS."""
    if not isinstance(name, str) or name not in TASKS:
        raise UserError(f"task is {name!r:.200}; known are {', '.join(TASKS)}")
    return TASKS[name]
