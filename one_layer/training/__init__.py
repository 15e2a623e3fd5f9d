"""Training of any task's model, from a resolved config to a scored checkpoint.

`train` is a whole run: `beginning` opens it, `trainer` has its arrays and `course` its loop. `step` is one update, `optimizer` Adam
and its schedules. `meter` and `metrics` measure and log, `interruption` handles signals, and `results` writes `result.json`. `population`
trains several runs in one program.
"""
