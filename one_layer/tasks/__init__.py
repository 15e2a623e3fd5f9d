"""The tasks that models are trained for, with one folder for each: everything specific to a task is in its folder.

`TASKS` has the tasks by name. The rest of the program uses a task only through the class `one_layer.tasks.protocol.Task`.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING

from one_layer.system.errors import UserError
from one_layer.tasks.known import KNOWN

if TYPE_CHECKING:
    from one_layer.tasks.protocol import Task


class _Tasks(MutableMapping[str, "Task"]):
    """The tasks by name. A task is imported when it is asked for: a command with a ticket needs one of them."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task | None] = dict.fromkeys(KNOWN)

    def __getitem__(self, name: str) -> Task:
        task = self._tasks[name]
        if task is None:
            task = getattr(import_module(f"one_layer.tasks.{name}"), KNOWN[name][0])()
            self._tasks[name] = task
        return task

    def __setitem__(self, name: str, task: Task) -> None:
        self._tasks[name] = task

    def __delitem__(self, name: str) -> None:
        del self._tasks[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)


TASKS = _Tasks()


def task_named(name: object) -> Task:
    """The task with this name. Raises: UserError for a name that is not in TASKS."""
    if not isinstance(name, str) or name not in TASKS:
        raise UserError(f"task is {name!r:.200}; known are {', '.join(TASKS)}")
    return TASKS[name]


def task_of_family(family: str) -> Task:
    """The task whose networks are of this family. Raises: UserError if there is none."""
    for task in TASKS.values():
        if task.family == family:
            return task
    raise UserError(f"no task has models of the family {family!r:.200}; known are {', '.join(TASKS)}")
