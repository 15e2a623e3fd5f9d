"""What models are trained for: a folder for each task, with everything that is particular to it.

`TASKS` has them by name. The rest of the program knows a task by the class `one_layer.tasks.protocol.Task` alone.
"""

from one_layer.errors import UserError
from one_layer.tasks.classification import Classification
from one_layer.tasks.protocol import Task
from one_layer.tasks.translation import Translation

TASKS: dict[str, Task] = {task.name: task for task in (Translation(), Classification())}


def task_named(name: object) -> Task:
    """Raises: UserError for a name that is not in TASKS."""
    if not isinstance(name, str) or name not in TASKS:
        raise UserError(f"task is {name!r:.200}; known are {', '.join(TASKS)}")
    return TASKS[name]


def task_of_family(family: str) -> Task:
    """The task whose networks are of this family. Raises: UserError where there is none."""
    for task in TASKS.values():
        if task.family == family:
            return task
    raise UserError(f"no task has models of the family {family!r:.200}; known are {', '.join(TASKS)}")
