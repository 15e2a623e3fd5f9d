"""The WebAssembly module is what its source says, and multiplies as the JavaScript does."""

from __future__ import annotations

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
