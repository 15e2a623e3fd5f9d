"""Puts JavaScript modules into one script, for a page that is one file: from disk, a browser loads no modules.

The modules are written for this: each import and export begins a line, an export has one name, no two modules import each other, and no
text in them has a line that begins with a space.
`tests/page/test_document.py` compares what a script has with what the modules export.
"""

import json
import posixpath
import re
from graphlib import TopologicalSorter
from pathlib import Path

FOLDER = Path(__file__).parent
_IMPORT = re.compile(r'^import (?:\* as (?P<all>\w+)|\{(?P<names>[^}]*)\}) from "(?P<path>\.[^"]+)";\n', re.M)
_EXPORT = re.compile(r"^export (?:(?:async )?function\*?|class|const) (\w+)", re.M)
_NEEDLESS = re.compile(
    r"^ *(?:/\*\*.*?\*/|//[^\n]*)?\n"  # comments and empty lines
    r"|^ +"  # indents
    r"| +// [^\"'`\n]*$",  # a comment behind code
    re.M | re.S,
)


def bundle(entry: str) -> str:
    """The script of a module and of all that it imports, as the object `modules` by path; `entry` is a path such as `view/main.js`."""
    sources, graph = dict[str, str](), dict[str, list[str]]()
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        if path not in sources:
            sources[path] = _NEEDLESS.sub("", (FOLDER / path).read_text(encoding="utf-8"))
            graph[path] = [_resolved(path, found["path"]) for found in _IMPORT.finditer(sources[path])]
            waiting += graph[path]
    order = TopologicalSorter(graph).static_order()
    return "const modules = {};\n" + "".join(_as_function(path, sources[path]) for path in order)


def _resolved(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _as_function(path: str, source: str) -> str:
    """A module as a function that is called at once and returns what the module exports."""
    imports = []
    for found in _IMPORT.finditer(source):
        names = found["all"] or "{" + found["names"].replace(" as ", ": ") + "}"
        imports.append(f"const {names} = modules[{json.dumps(_resolved(path, found['path']))}];\n")
    body = re.sub("^export ", "", _IMPORT.sub("", source), flags=re.M)
    returned = ", ".join(_EXPORT.findall(source))
    return f"modules[{json.dumps(path)}] = (() => {{\n{''.join(imports)}{body}return {{ {returned} }};\n}})();\n"
