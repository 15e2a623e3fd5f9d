"""Bytes between devices, as read from a program's text."""

from __future__ import annotations

from launch.benchmarks.transfers import moved_bytes

PROGRAM = """HloModule jit_step

%body (carried: (s32[], f32[4])) -> (s32[], f32[4]) {
  %sum = f32[4]{0} all-reduce(%x), channel_id=1
}

%condition (carried: (s32[], f32[4])) -> pred[] {
  %less = pred[] compare(%i, %n)
}

%search (carried: s32[]) -> s32[] {
  %count = (s32[], s32[2]{0}) all-reduce(%a, %b), channel_id=2
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %bits = u8[3,5]{1,0} all-gather(%p), channel_id=3
  %layers = (s32[], f32[4]) while(%t), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"6"}}
  %found = s32[] while(%s), condition=%condition, body=%search
  %moved = bf16[10]{0} collective-permute(%p), channel_id=4
}
"""


def test_a_loop_over_layers_counts_as_often_as_it_turns():
    gathered, exchanged = 3 * 5, 10 * 2
    assert moved_bytes(PROGRAM) == {"gathered": gathered, "reduced": 6 * 4 * 4 + (1 + 2) * 4, "exchanged": exchanged}


def test_a_program_without_collectives_moves_nothing():
    assert set(moved_bytes("ENTRY %main (p: f32[8]) -> f32[8] {\n  %y = f32[8] add(%p, %p)\n}").values()) == {0}
