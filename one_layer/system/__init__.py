"""What a process needs: `errors` for users, `files` written whole or not at all, kept memory (`heap`) and a `program_cache`."""
