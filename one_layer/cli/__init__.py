"""What runs a command: `options` has its flags, `modes` what each mode does with them, and `config_files` finds its config.

`command` says a user's mistake in one sentence.
"""
