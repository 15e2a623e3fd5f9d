"""The WebAssembly module is what its source says, and computes as the JavaScript does."""

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
    many = [k % 37 - 90 * (k % 3) for k in range(999)]
    rows = [[0.5], many, [3, "-Infinity", -200, 3], [1, "NaN", 2], [1, "Infinity"]]
    found = [list(map(float, each)) for each in evaluate(script, {"rows": rows, "simd": simd})]
    for row, (most, log) in zip(rows[:3], found, strict=False):
        numbers = list(map(float, row))
        assert most == max(numbers)
        assert abs(log - math.log(sum(math.exp(each - most) for each in numbers))) < 1e-7
    assert all(math.isnan(log) for _, log in found[3:])


def test_a_table_of_small_whole_numbers_is_multiplied_by_its_codes():
    """Each row has a unit of its own; a row may be zeros. One other number makes it an ordinary table, and so does a small size."""
    script = """
        const { linear } = await import(`${page}/engine/linear.js`);
        const { roomFor } = await import(`${page}/engine/room.js`);
        const { codesOf } = await import(`${page}/engine/codes.js`);
        return given.map(([rows, inputs, outputs, odd]) => {
            const weights = roomFor([inputs * outputs], inputs, outputs)(inputs * outputs);
            const units = new Float32Array(outputs).map(() => Math.random());
            weights.set(weights.map((_, k) => units[Math.floor(k / inputs)] * (k % inputs ? Math.floor(16 * Math.random()) - 8 : 1)));
            weights.fill(0, inputs, 2 * inputs);
            weights[weights.length - 1] += odd;
            const x = new Float32Array(rows * inputs).map(() => 2 * Math.random() - 1);
            const [found, plain] = [weights, weights.slice()].map((each) => linear(x, rows, inputs, each, outputs));
            return [codesOf(weights, inputs, outputs) !== null, Math.max(...found.map((value, k) => Math.abs(value - plain[k])))];
        });
    """
    shapes = [[1, 1024, 1024, 0], [5, 1040, 1025, 0], [7, 64, 2**14, 0], [5, 1024, 1024, 0.01], [5, 1024, 512, 0]]
    found = evaluate(script, shapes)
    assert [by_codes for by_codes, _ in found] == [True] * 3 + [False] * 2
    assert max(other for _, other in found) < 1e-3  # of sums of a thousand numbers up to 8


def test_a_large_network_multiplies_with_weights_and_bits():
    """Depths have bits of their own; rows that the module does not take, and arrays outside of its memory, have products."""
    script = """
        const { linear } = await import(`${page}/engine/linear.js`);
        const { Matrix } = await import(`${page}/engine/matrix.js`);
        const { roomFor } = await import(`${page}/engine/room.js`);
        return given.map(([rows, inputs, outputs, inside]) => {
            const size = inputs * outputs, bits = new Uint8Array((2 * size) / 8).map(() => 256 * Math.random());
            const mask = { shape: [inputs, outputs], layers: 2, mask: bits, sign: null };
            const values = new Float32Array(size).map(() => 2 * Math.random() - 1);
            const make = () => new Matrix("encoder/ffn/in", inputs, outputs, values, null, mask, false, true), masked = make();
            const room = inside ? roomFor(masked.sizes(true), inputs, outputs) : (size) => new Float32Array(size);
            const x = new Float32Array(rows * inputs).map(() => 2 * Math.random() - 1);
            const product = (size) => new Float32Array(size);
            const others = [1, 0, 1].map((depth) => {
                const [weights, packed] = masked.factors(depth, room, true);
                const found = linear(x, rows, inputs, weights, outputs, null, packed);
                const wanted = linear(x, rows, inputs, make().product(depth, product), outputs);
                return Math.max(...found.map((value, k) => Math.abs(value - wanted[k])));
            });
            return [masked.factors(0, room, true)[1] !== null, Math.max(...others)];
        });
    """
    shapes = [[1, 8, 16, True], [5, 24, 48, True], [12, 16, 32, True], [5, 16, 24, True], [5, 16, 32, False]]
    found = evaluate(script, shapes)
    assert [by_bits for by_bits, _ in found] == [True] * 3 + [False] * 2
    assert max(other for _, other in found) < 1e-5
