"""The arithmetic and the bytes of operations, read from the text of a program."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from launch.benchmarks.programs import operations

PROGRAM = """
%fused_slice (a: f32[6,8,4], i: s32[]) -> bf16[8,4] {
  %a = f32[6,8,4]{2,1,0} parameter(0)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  %cut = f32[1,8,4]{2,1,0} dynamic-slice(%a, %i, %zero, %zero), dynamic_slice_sizes={1,8,4}
  %flat = f32[8,4]{1,0} bitcast(%cut)
  ROOT %cast = bf16[8,4]{1,0} convert(%flat), metadata={op_name="jit(step)/cond/branch_1_fun/mul"}
}

%fused_write (b: f32[6,8,4], c: f32[8,4], j: s32[]) -> f32[6,8,4] {
  %b = f32[6,8,4]{2,1,0} parameter(0)
  %c = f32[8,4]{1,0} parameter(1)
  %j = s32[] parameter(2)
  %none = s32[] constant(0)
  %one = f32[1,8,4]{2,1,0} bitcast(%c)
  ROOT %put = f32[6,8,4]{2,1,0} dynamic-update-slice(%b, %one, %j, %none, %none)
}

ENTRY %main (x: bf16[3,5,8], y: bf16[3,5,4], s: f32[6,8,4], n: s32[]) -> (f32[3,8,4], bf16[8,4]) {
  %x = bf16[3,5,8]{2,1,0} parameter(0)
  %y = bf16[3,5,4]{2,1,0} parameter(1)
  %s = f32[6,8,4]{2,1,0} parameter(2)
  %n = s32[] parameter(3)
  %stack = f32[3,8,4]{2,1,0} dot(%x, %y), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}
  %slice = bf16[8,4]{1,0} fusion(%s, %n), kind=kLoop, calls=%fused_slice
  %write = f32[6,8,4]{2,1,0} fusion(%s, %n), kind=kLoop, calls=%fused_write
  ROOT %both = (f32[3,8,4]{2,1,0}, bf16[8,4]{1,0}) tuple(%stack, %slice)
}
"""


def test_a_stack_of_products():
    found = operations(PROGRAM)["stack"]
    assert (found.group, found.kind) == ("3 products 8 x 5 x 4 bf16", "bf16")
    assert found.flops == 2 * 3 * 8 * 5 * 4
    assert found.bytes == 2 * (3 * 5 * 8 + 3 * 5 * 4) + 4 * 3 * 8 * 4


def test_only_slices_of_large_arrays_count():
    found = operations(PROGRAM)
    assert found["slice"].group == "Adam"
    assert found["slice"].bytes == 4 * 8 * 4 + 4 + 2 * 8 * 4
    assert found["write"].bytes == 2 * 4 * 8 * 4 + 4
    assert not {"both", "x"} & found.keys(), "neither does any work"


def test_the_text_that_this_version_of_xla_writes():
    x, y = jnp.ones((6, 10)), jnp.ones((10, 7))
    program = jax.jit(lambda x, y: jnp.tanh(x @ y)).lower(x, y).compile().as_text()
    products = [each for each in operations(program).values() if each.kind]
    assert {each.group for each in products} == {"product 6 x 10 x 7 f32"}
    assert {each.flops for each in products} == {2 * 6 * 10 * 7}
