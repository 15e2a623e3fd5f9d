"""Runs on disk: the settings, the folder and the checkpoints of a training.

`settings` and `records` turn configs into frozen records. `folder`, `checkpoints` and `frozen` read and write a run's files.
`restore` loads a trained model, and `evaluate` scores one.
"""
