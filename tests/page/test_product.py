"""The WebAssembly module is what its source says, and computes as the JavaScript does."""

from __future__ import annotations

import math

import pytest

from tests.page.assembled import FILE, assembled
from tests.page.node import evaluate


def test_the_module_is_its_source_assembled():
    pytest.importorskip("wasmtime")
    assert FILE.read_text("utf-8") == assembled()


def test_products_in_webassembly_are_those_of_javascript():
    """Whatever the number of rows; inputs that are no multiple of 4 and single outputs are left to JavaScript."""
    script = """
        const { linear } = await import(`${page}/engine/linear.js`);
        const { multiplied, roomFor } = await import(`${page}/engine/room.js`);
        const draw = (array) => array.map(() => 2 * Math.random() - 1);
        return given.map(([rows, inputs, outputs]) => {
            const sizes = [inputs * outputs, 3, inputs * outputs], room = roomFor(sizes, inputs, outputs);
            const [first, , weights] = sizes.map(room);
            weights.set(draw(new Float32Array(inputs * outputs)));
            const x = draw(new Float32Array(rows * inputs)), bias = draw(new Float32Array(outputs));
            const [found, plain] = [weights, weights.slice()].map((each) => linear(x, rows, inputs, each, outputs, bias));
            const other = Math.max(...found.map((value, k) => Math.abs(value - plain[k])));
            return [multiplied(x, rows, inputs, weights, outputs, found), other, Math.max(...first), room(4).buffer !== weights.buffer];
        });
    """
    shapes = [[1, 4, 2], [5, 8, 3], [7, 64, 33], [12, 16, 6], [2, 6, 4], [3, 8, 1]]
    for (_, inputs, outputs), (quick, other, before, full) in zip(shapes, evaluate(script, shapes), strict=True):
        assert quick == (inputs % 4 == 0 and outputs > 1)
        assert other < 1e-5 and before == 0 and full


def test_a_table_of_signs_is_multiplied_by_its_bits():
    """With a row of zeros, as a pad has; a table with one number of another size, and a small one, are not taken for such a table."""
    script = """
        const { linear } = await import(`${page}/engine/linear.js`);
        const { roomFor } = await import(`${page}/engine/room.js`);
        const { signsOf } = await import(`${page}/engine/signs.js`);
        return given.map(([rows, inputs, outputs, odd]) => {
            const weights = roomFor([inputs * outputs], inputs, outputs)(inputs * outputs);
            weights.set(weights.map(() => (Math.random() < 0.5 ? -0.25 : 0.25)).fill(0, inputs, 2 * inputs));
            weights[weights.length - 1] *= odd;
            const x = new Float32Array(rows * inputs).map(() => 2 * Math.random() - 1);
            const [found, plain] = [weights, weights.slice()].map((each) => linear(x, rows, inputs, each, outputs));
            return [signsOf(weights, inputs, outputs) !== null, Math.max(...found.map((value, k) => Math.abs(value - plain[k])))];
        });
    """
    shapes = [[1, 8, 512, 1], [5, 40, 513, 1], [19, 16, 600, 1], [5, 16, 600, 2], [5, 16, 600, 0], [5, 16, 300, 1]]
    found = evaluate(script, shapes)
    assert [by_bits for by_bits, _ in found] == [True] * 3 + [False] * 3
    assert max(other for _, other in found) < 1e-5


@pytest.mark.parametrize("simd", [True, False])
def test_the_sum_of_exponentials_is_exact_to_the_rounding_of_a_float32(simd):
    """Also of what is no finite number."""
    script = """
        if (!given.simd) WebAssembly.validate = () => false;
        const { logSum } = await import(`${page}/engine/functions.js`);
        return given.rows.map((row) => {
            const { most, log } = logSum(Float32Array.from(row, Number));
            return [most, log].map(String);
        });
    """
    rows = [
        [0.5],
        [k % 37 - 90 * (k % 3) for k in range(999)],
        [3, "-Infinity", -200, 3],
        [1, "NaN", 2],
        [1, "Infinity"],
    ]
    found = [list(map(float, each)) for each in evaluate(script, {"rows": rows, "simd": simd})]
    for row, (most, log) in zip(rows[:3], found, strict=False):
        numbers = list(map(float, row))
        assert most == max(numbers)
        assert abs(log - math.log(sum(math.exp(each - most) for each in numbers))) < 1e-7
    assert all(math.isnan(log) for _, log in found[3:])
