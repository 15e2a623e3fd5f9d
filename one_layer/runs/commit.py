"""Which commit of the code runs. Imports no JAX."""

import subprocess
from pathlib import Path

COMMIT_FILE = ".commit"  # beside a copy of the package: the commit that was copied


def commit() -> str | None:
    """The commit of the code that runs, followed by `+` if files differ from it; None outside a repository."""
    root = Path(__file__).resolve().parents[2]
    if (root / COMMIT_FILE).is_file():
        return (root / COMMIT_FILE).read_text("utf-8").strip() or None

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", __file__)  # an installed package may lie in a folder of another repository
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
