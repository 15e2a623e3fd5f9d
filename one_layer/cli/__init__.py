"""What runs a command: `options` has its flags, `config_files` finds its config, and `command` says a user's mistake in one sentence."""
