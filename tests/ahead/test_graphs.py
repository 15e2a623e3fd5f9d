"""Loops outside CUDA graphs, read from lists in the form in which XLA writes them."""

from __future__ import annotations

import pytest

from one_layer.ahead.graphs import loops_outside

_NAMES = """
thunk_metadata {
  thunk_info {
    profile_annotation: "while.5"
    thunk_id: 2
  }
  thunk_kind: "kWhile"
}
thunk_metadata {
  thunk_info {
    profile_annotation: "add.1"
    thunk_id: 4
  }
  thunk_kind: "kCustomKernel"
}
thunk_metadata {
  thunk_info {
    profile_annotation: "while.7"
    thunk_id: 7
  }
  thunk_kind: "kWhile"
}
"""
_HOST = """001: kCopy  [source       | next=002 (1)] kCopy
002: kWhile [prev=001 (1) | next=007 (1)]
condition:
    003: kCustomKernel [source | sink] compare
  body:
    004: kCustomKernel [source | sink] add
007: kWhile [prev=002 (1) | sink        ]
"""
_SECOND_IN_A_GRAPH = """002: kWhile [source | next=009 (1)]
  body:
    008: kCommandBuffer [source | sink]
        004: kCustomKernel [source | sink] add
009: kCommandBuffer [prev=002 (1) | sink]
    007: kWhile [source | sink]
"""
_ALL_IN_A_GRAPH = """009: kCommandBuffer [source | sink]
    002: kWhile [source | next=007 (1)]
      body:
        004: kCustomKernel [source | sink] add
    007: kWhile [prev=002 (1) | sink]
"""


@pytest.mark.parametrize(
    ("after", "outside"),
    [("", {"while.5", "while.7"}), (_SECOND_IN_A_GRAPH, {"while.5"}), (_ALL_IN_A_GRAPH, set())],
)
def test_a_loop_is_the_host_s_unless_a_graph_holds_it(tmp_path, after, outside):
    (tmp_path / "module_0001.jit_f.thunk_metadata.txt").write_text(_NAMES)
    (tmp_path / "module_0001.jit_f.thunk_sequence.txt").write_text(_HOST)
    if after:
        (tmp_path / "module_0001.jit_f.thunk_sequence_after_thunk_passes.txt").write_text(after)
    assert loops_outside(tmp_path) == outside
