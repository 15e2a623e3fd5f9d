"""Which loops of a program for a GPU lie outside its CUDA graphs, so that the host drives them."""

from __future__ import annotations

import re
from pathlib import Path

_LINE = re.compile(
    r"( *)(\d+): (k\w+)"
)  # of XLA's list of what the host starts; what is inside stands further to the right
_NAME = re.compile(r'profile_annotation: "([^"]*)"\s+thunk_id: (\d+)\s*}\s*thunk_kind: "kWhile"')


def loops_outside(folder: Path) -> frozenset[str]:
    """The names of the loops outside CUDA graphs, from what XLA wrote to `folder` (`xla_dump_to`) while it compiled one program."""
    [names] = folder.glob("*.thunk_metadata.txt")
    # The second list is there where XLA has made graphs.
    lists = sorted(folder.glob("*.thunk_sequence*.txt"), key=lambda file: "after_thunk_passes" in file.name)
    named = {int(number): name for name, number in _NAME.findall(names.read_text())}
    found, graph = set(), None
    for indent, number, kind in _LINE.findall(lists[-1].read_text()):
        depth = len(indent)
        graph = None if graph is not None and depth <= graph else graph
        if graph is None and kind == "kCommandBuffer":
            graph = depth
        elif graph is None and kind == "kWhile":
            found.add(named[int(number)])
    return frozenset(found)
