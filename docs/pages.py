"""The pages that `make docs` builds, a hook of MkDocs.

Each Markdown file keeps its place in the repository, so that a link works in the pages as it does in the repository. Files that it links
to are copied. `docs/api.md` is made here: it shows the docstring of each name in ARCHITECTURE's table of public functions.
"""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(path for folder in ("docs", "examples", "results", "tickets") for path in sorted((ROOT / folder).rglob("*.md"))),
]


def public_names() -> list[str]:
    """The dotted names in the first column of the table "Public functions"."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8")
    rows = text.partition("## Public functions\n")[2].partition("\n## ")[0]
    cells = "\n".join(line.split("|")[1] for line in rows.splitlines() if line.startswith("|"))
    return re.findall(r"`(one_layer(?:\.\w+)+)", cells)


def api() -> str:
    """The page of the public API, for mkdocstrings."""
    return "\n\n".join(["# Public API", *(f"::: {name}" for name in public_names())])


def linked(page: Path) -> set[Path]:
    """The files, but for other pages, to which a page links; with the page of a report, the other files of its folder."""
    targets = re.findall(r"\]\(([^)\s#:]+)[^)]*\)", page.read_text("utf-8"))
    files = {
        path for target in targets if (path := (page.parent / target).resolve()).is_file() and path.suffix != ".md"
    }
    return files | {
        each for path in files if path.suffix == ".html" for each in path.parent.iterdir() if each.is_file()
    }


def on_files(files: Any, config: Any) -> Any:
    """The files of the pages in the place of those of docs/, beside the theme's."""
    from mkdocs.structure.files import File, Files

    def at(path: Path) -> File:
        return File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))

    theme = [each for each in files if not (each.abs_src_path or "").startswith(config.docs_dir)]
    copied = sorted(set().union(*map(linked, PAGES)))
    return Files([*theme, *map(at, [*PAGES, *copied]), File.generated(config, "docs/api.md", content=api())])
