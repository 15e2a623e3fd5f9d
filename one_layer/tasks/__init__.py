"""The tasks that models are trained for, with one folder for each: everything specific to a task is in its folder.

`TASKS` has the tasks by name. The rest of the program uses a task only through the class `one_layer.tasks.protocol.Task`.
"""

from one_layer.system.errors import UserError
from one_layer.tasks.causal_lm import CausalLM
from one_layer.tasks.classification import Classification
from one_layer.tasks.masked_lm import MaskedLM
from one_layer.tasks.protocol import Task
from one_layer.tasks.translation import Translation

TASKS: dict[str, Task] = {task.name: task for task in (Translation(), Classification(), CausalLM(), MaskedLM())}


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
