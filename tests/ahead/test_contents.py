"""What is read from the text of compiled programs: written by hand in the forms of XLA's compilers for CPUs, GPUs and TPUs."""

import pytest

from one_layer.ahead.chips import Target
from one_layer.ahead.contents import contents
from one_layer.ahead.prediction import predict

LOOPS = """HloModule jit_step

%body (carried: (s32[], f32[4])) -> (s32[], f32[4]) {
  %sum = f32[4]{0} all-reduce(%x), channel_id=1, replica_groups={{0,1,2,3}}
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
  %found = s32[] while(%s), condition=%condition, body=%search, metadata={op_name="jit(step)/largest/while"}
  %moved = bf16[10]{0} collective-permute(%p), channel_id=4
}
"""
# A TPU program does not say the turns of a loop, and has an asynchronous collective in several lines with one channel.
TPU = """%body (carried: (s32[], f32[4])) -> (s32[], f32[4]) {
  %sum-start = f32[4]{0:T(128)} all-reduce-start(%x), channel_id=1
  %again = f32[4]{0:T(128)} all-reduce-start(%x), channel_id=1
  %other = f32[2]{0:T(128)} all-reduce(%y), channel_id=1
  %sum-done = f32[4]{0:T(128)} all-reduce-done(%sum-start)
}

%condition (carried: (s32[], f32[4])) -> pred[] {
  %six = s32[] constant(6)
  %i = s32[] get-tuple-element(%carried), index=0
  ROOT %less = pred[] compare(%i, %six), direction=LT
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %layers = (s32[], f32[4]) while(%t), condition=%condition, body=%body
}
"""
SCATTER = """%all-reduce-scatter.3 (input: f32[32]) -> f32[8] {
  %input = f32[32]{0:T(128)} parameter(0)
  %sum = f32[32]{0:T(128)} all-reduce(%input), channel_id=1, replica_groups={{0,1,2,3}}
  ROOT %cut = f32[8]{0:T(128)S(1)} dynamic-slice(%sum, %first), dynamic_slice_sizes={8}
}

ENTRY %main (p: f32[32]) -> f32[8] {
  %p = f32[32]{0:T(128)} parameter(0)
  ROOT %mine = f32[8]{0:T(128)S(1)} fusion(%p), kind=kCustom, calls=%all-reduce-scatter.3
}
"""
GPU = """ENTRY %main (p: bf16[4,8]) -> f32[4,2] {
  %p = bf16[4,8]{1,0} parameter(0)
  %w = bf16[8,2]{1,0} parameter(1)
  %product = (f32[4,2]{1,0}, s8[64]{0}) custom-call(%p, %w), custom_call_target="__cublas$lt$matmul"
  %first = f32[4,2]{1,0} get-tuple-element(%product), index=0
  %bits = (u8[10]{0}, u8[80]{0}) all-gather-start(%q), channel_id=1, replica_groups=mesh['a'=2,'b'=8] {'b'}, dimensions={0}
  %whole = u8[80]{0} all-gather-done(%bits)
}
"""
# As XLA of JAX 0.11 writes it: a library's product takes its own part of stacked weights.
FUSED_PRODUCT = """%sliced (stack: bf16[6,8,2], x: bf16[4,8]) -> (bf16[4,2], s8[64]) {
  %x = bf16[4,8]{1,0} parameter(1)
  %stack = bf16[6,8,2]{2,1,0} parameter(0)
  %one = bf16[1,8,2]{2,1,0} slice(%stack), slice={[2:3], [0:8], [0:2]}
  %w = bf16[8,2]{1,0} bitcast(%one)
  ROOT %call = (bf16[4,2]{1,0}, s8[64]{0}) custom-call(%x, %w), custom_call_target="__cublas$lt$matmul", metadata={op_name="a/dot"}
}

ENTRY %main (p: bf16[6,8,2]) -> bf16[4,2] {
  %p = bf16[6,8,2]{2,1,0} parameter(0)
  %x = bf16[4,8]{1,0} parameter(1)
  %both = (bf16[4,2]{1,0}, s8[64]{0}) fusion(%p, %x), kind=kCustom, calls=%sliced, metadata={}
  ROOT %y = bf16[4,2]{1,0} get-tuple-element(%both), index=0
}
"""
SLICES = """%fused (big: f32[100,4], i: s32[]) -> f32[4] {
  %big = f32[100,4]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %row = f32[1,4]{1,0} dynamic-slice(%big, %i, %zero), dynamic_slice_sizes={1,4}
  ROOT %flat = f32[4]{0} bitcast(%row)
}

ENTRY %main (p: f32[100,4]) -> f32[4] {
  %p = f32[100,4]{1,0} parameter(0)
  %n = s32[] parameter(1)
  ROOT %taken = f32[4]{0} fusion(%p, %n), kind=kLoop, calls=%fused
}
"""
# In place: the tenth of `big` is replaced, and all of the update is read.
REPLACED = """%fused (big: f32[10,4], part: f32[1,4], i: s32[]) -> f32[10,4] {
  %big = f32[10,4]{1,0} parameter(0)
  %part = f32[1,4]{1,0} parameter(1)
  %i = s32[] parameter(2)
  ROOT %all = f32[10,4]{1,0} dynamic-update-slice(%big, %part, %i, %zero)
}

ENTRY %main (p: f32[10,4], q: f32[1,4]) -> f32[10,4] {
  %p = f32[10,4]{1,0} parameter(0)
  %q = f32[1,4]{1,0} parameter(1)
  %n = s32[] parameter(2)
  ROOT %kept = f32[10,4]{1,0} fusion(%p, %q, %n), kind=kLoop, calls=%fused
}
"""
# Two machines of eight devices, as `mesh.data` of two and `mesh.model` of eight.
PAIRS, EIGHTS = tuple((place, place + 8) for place in range(8)), (tuple(range(8)), tuple(range(8, 16)))


def test_a_loop_over_layers_counts_as_often_as_it_turns():
    found = contents(LOOPS)
    assert found.moved == {"gathered": 3 * 5, "reduced": 6 * 4 * 4 + (1 + 2) * 4, "exchanged": 10 * 2}
    assert list(found.open_loops.values()) == ["jit(step)/largest/while"]


def test_turns_are_read_from_a_condition_and_an_asynchronous_collective_counts_once():
    found = contents(TPU)
    assert found.moved["reduced"] == 6 * (4 + 2) * 4 and not found.open_loops


def test_a_tpu_s_fusion_of_a_sum_and_a_cut_is_a_reduce_scatter():
    (found,) = contents(SCATTER).transfers
    assert (found.operation, found.bytes, found.devices) == ("reduce-scatter", 4 * 8, 4) and found.sent == 3 * 4 * 8


def test_a_start_counts_its_result_and_a_product_of_a_library_is_a_product():
    found = contents(GPU)
    (gathered,) = found.transfers
    assert (gathered.bytes, gathered.devices) == (80, 8) and gathered.sent == 70
    assert found.products == {"bf16 x bf16 -> f32": 1}


@pytest.mark.parametrize(
    ("form", "groups"),
    [
        ("replica_groups={{0,1,2,3,4,5,6,7},{8,9,10,11,12,13,14,15}}", EIGHTS),
        ("replica_groups=[2,8]<=[16]", EIGHTS),
        ("replica_groups=mesh['a'=2,'b'=8] {'b'}", EIGHTS),
        ("replica_groups=[8,2]<=[2,8]T(1,0)", PAIRS),
        ("replica_groups=mesh['a'=2,'b'=8] {'a'}", PAIRS),
        ("replica_groups=mesh['a'=8,'b'=2], device_ids=([2,8]T(1,0)) {'b'}", PAIRS),
        ("source_target_pairs={{0,8},{1,9},{2,10},{3,11},{4,12},{5,13},{6,14},{7,15}}", PAIRS),
    ],
)
def test_the_groups_of_a_collective_are_read_and_say_whether_it_leaves_a_machine(form, groups):
    """However few devices take part, what goes from one machine to another goes over the network."""
    text = f"ENTRY %main (p: f32[4]) -> f32[4] {{\n  %y = f32[4]{{0}} all-reduce(%p), channel_id=1, {form}, x={{1}}\n}}"
    (found,) = contents(text).transfers
    assert found.groups == groups and found.leaves(8) == (groups == PAIRS)
    target = Target.of("h100x16")
    speed = target.chip.network if groups == PAIRS else target.chip.link
    assert predict(contents(text), 1.0, target).wire == pytest.approx(found.sent / speed)


@pytest.mark.parametrize(("groups", "sent"), [("{{0,1}}", 16), ("{{0,1,2,3}}", 24), ("[2,8]<=[16]", 28)])
def test_an_all_reduce_sends_each_part_twice_but_to_the_device_that_has_it(groups, sent):
    text = f"ENTRY %main (p: f32[4]) -> f32[4] {{\n  %y = f32[4]{{0}} all-reduce(%p), channel_id=1, replica_groups={groups}\n}}"
    assert contents(text).transfers[0].sent == sent


def test_a_kernel_that_takes_a_row_reads_a_row():
    found = contents(SLICES)
    assert found.kernels == 1 and found.bytes == 4 * 4 + 4 * 4 + 4


def test_a_kernel_that_replaces_a_row_reads_and_writes_a_row():
    assert contents(REPLACED).bytes == 4 * 4 + 4 * 4 + 4


def test_a_product_fused_with_a_slice_reads_the_slice_and_has_the_name_of_the_product():
    """The workspace of the library is not counted."""
    found = contents(FUSED_PRODUCT)
    (kernel,) = found.largest(2)
    assert found.products == {"bf16 x bf16 -> bf16": 1}
    assert (kernel.kind, kernel.made_by) == ("__cublas$lt$matmul -> bf16+s8", "a/dot")
    assert kernel.bytes == 2 * (4 * 8 + 8 * 2 + 4 * 2)


def test_a_program_without_collectives_moves_nothing():
    assert set(contents("ENTRY %main (p: f32[8]) -> f32[8] {\n  %y = f32[8] add(%p, %p)\n}").moved.values()) == {0}
