"""Stacks of unlike layers: updatable layers, reservoirs and masked layers in any order (arXiv 2012.15045, section 2).

The pattern is cut into segments, each a unit of layers that is repeated (see `one_layer.layers.pattern.segments`). A segment is one
scan, so the program does not grow with the number of repetitions. Layers of one letter are unlike too if other parts of them are frozen;
no gradient of a frozen part is computed.

Two things happen in training alone, that is, when the stack has a random stream:

- LayerDrop (Fan et al. 2020, arXiv 1909.11556): each layer is left out for the whole batch with a given probability. Nothing is rescaled.
- Backskipping (arXiv 2012.15045, abstract and introduction: "the backward pass can be entirely skipped by approximating top-layer
  gradients"): the backward pass through a reservoir is not computed. With `identity`, which is this project's reading, the gradient
  of its output is passed on unchanged as the gradient of its input; the residual connection makes this plausible. With `policy`, a
  small network proposes it (see `one_layer.layers.backskipping`): the stack's collection `backskip` has its parameters in updates that
  skip the backward pass, and only `reports` in the others. Both replace the gradient of the layer's input alone. A reservoir that attends
  to an encoded source has a second input, which no residual connection passes on; the gradient of this one is computed. Without it, no
  gradient would reach an encoder below such reservoirs.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from one_layer.layers.backskipping import observed, proposed
from one_layer.layers.blocks import Layer
from one_layer.layers.freezing import words
from one_layer.layers.groups import Group, StackSettings, group_variables, has_layer_axis
from one_layer.layers.pattern import segments
from one_layer.layers.trees import Path, Variables, flatten_dict, unflatten_dict

Keys = dict[str, Array]  # by the name of their random stream; empty but in training
Made = dict[str, Variables]  # new values of mutable collections, by collection and group


class _Segment(NamedTuple):
    """A unit of layers that is repeated. Each layer is its letter, and the paths of its variables that are frozen."""

    unit: list[tuple[str, frozenset[Path]]]
    repetitions: int
    before: Counter[str]  # the layers of each letter that come before the segment

    @property
    def letters(self) -> Counter[str]:
        """The layers of each letter in the unit."""
        return Counter(letter for letter, _ in self.unit)

    def own(self, letter: str, variables: Variables) -> Variables:
        """The `variables` of all layers of `letter`, with the axes [repetition, layer of the unit] in the place of the layer axis."""
        first, inside = self.before[letter], self.letters[letter]
        end, axes = first + self.repetitions * inside, (self.repetitions, inside)
        return jax.tree.map(lambda leaf: leaf[first:end].reshape(*axes, *leaf.shape[1:]), variables)

    def keys(self, keys: Keys) -> Keys:
        """The `keys` of all layers of the stack, with the axes [repetition, place in the unit]."""
        first, count = self.before.total(), self.repetitions * len(self.unit)
        return jax.tree.map(lambda each: each[first : first + count].reshape(self.repetitions, -1), keys)


def run_mixed(
    layer: type[Layer],
    settings: StackSettings,
    variables: Variables,
    x: Float[Array, "batch length d"],
    rest: Sequence[Any],
    streams: Keys,
    mutable: list[str],
) -> tuple[Float[Array, "batch length d"], Made]:
    """The output of the last layer, and what the layers wrote into the collections in `mutable`, with each group's layer axis first.

    `variables` are the stack's, and so are the random `streams`, one of which is `dropout`.
    """
    counts = Counter(settings.pattern)
    parts = {letter: group_variables(variables, settings.group(letter), count) for letter, count in counts.items()}
    frozen = [_frozen(settings, number, letter, variables) for number, letter in enumerate(settings.pattern, 1)]
    keys = jax.tree.map(lambda key: jax.random.split(key, len(settings.pattern)), streams)
    made: dict[str, list[Variables]] = {letter: [] for letter in counts}

    def call(remat: bool, letter: str, own: Variables, x: Array, keys: Keys) -> tuple[Array, Variables]:
        function = _call(layer, settings, settings.group(letter), rest, mutable, variables.get("backskip", {}), remat)
        return function({**parts[letter][0], **own}, x, keys)

    for segment in _segments(list(zip(settings.pattern, frozen, strict=True))):
        items = {letter: segment.own(letter, parts[letter][1]) for letter in segment.letters}, segment.keys(keys)
        body = _unit(segment, partial(call, settings.remat and segment.repetitions > 1))
        if segment.repetitions == 1 and settings.freezing.by_layer:
            # A scan would compute the gradient of its first input if any of its layers is trained, even with only frozen layers below.
            x, one = body(x, jax.tree.map(lambda leaf: leaf[0], items))
            written = jax.tree.map(lambda leaf: leaf[None], one)
        else:
            x, written = jax.lax.scan(body, x, items, unroll=segment.repetitions if settings.unrolled else 1)
        for letter, tree in written.items():
            made[letter].append(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tree))

    whole = {letter: jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *trees) for letter, trees in made.items()}
    return x, {
        name: {settings.group(letter).name: tree[name] for letter, tree in whole.items() if name in tree}
        for name in mutable
    }


def _segments(layers: Sequence[tuple[str, frozenset[Path]]]) -> Iterator[_Segment]:
    """The segments of the stack's `layers`."""
    kinds = list(dict.fromkeys(layers))
    before: Counter[str] = Counter()
    for marks, repetitions in segments("".join(chr(kinds.index(each)) for each in layers)):
        segment = _Segment([kinds[ord(mark)] for mark in marks], repetitions, before.copy())
        yield segment
        before.update({letter: repetitions * count for letter, count in segment.letters.items()})


def _unit(segment: _Segment, call: Callable[..., tuple[Array, Variables]]) -> Callable[..., tuple[Array, Variables]]:
    """The function of one repetition: (x, (variables of its layers by letter, keys)) -> (output, what the layers wrote, by letter)."""

    def body(x: Array, item: tuple[dict[str, Variables], Keys]) -> tuple[Array, dict[str, Variables]]:
        own, keys = item
        written: dict[str, list[Variables]] = {letter: [] for letter in own}
        for place, (letter, held) in enumerate(segment.unit):
            number = len(written[letter])  # of the layers of this letter in the unit
            of_layer = jax.tree.map(lambda leaf, number=number: leaf[number], own[letter])
            of_place = jax.tree.map(lambda each, place=place: each[place], keys)
            x, changed = call(letter, _with_frozen(of_layer, held), x, of_place)
            written[letter].append(changed)
        return x, {letter: jax.tree.map(lambda *leaves: jnp.stack(leaves), *each) for letter, each in written.items()}

    return body


def _frozen(settings: StackSettings, number: int, letter: str, variables: Variables) -> frozenset[Path]:
    """The paths of a layer's variables that are not trained, if its stack's layers differ in that: with `materialized` ones.

    What all layers share belongs to none of them. `variables` are the stack's.
    """
    if not settings.freezing.by_layer:
        return frozenset()
    group = settings.group(letter)
    held = {
        name: variables[name][group.name]
        for name in ("params", "materialized")
        if group.name in variables.get(name, {})
    }

    def trains(path: Path, last: str, shared: bool) -> bool:
        return settings.freezing.trains(
            words((settings.name, group.name, *path[1:-1], last), None if shared else number)
        )

    def trained(path: Path, leaf: Array) -> bool:
        # A product W ⊙ M has a layer axis if W has one, though all layers may share the scores of M. What is trained beside M is in it.
        if path[0] == "materialized":
            own = ("scores", group.one_mask) if group.layer.kind == "masked" else ("kernel", group.one_weight)
            return trains(path, *own) or any(trains(path, last, False) for last in settings.beside)
        return trains(path, path[-1], group.shared_params and not has_layer_axis(path[-1], leaf.shape))

    return frozenset(path for path, leaf in flatten_dict(held).items() if not trained(path, leaf))


def _with_frozen(variables: Variables, frozen: frozenset[Path]) -> Variables:
    """The same variables; no gradient goes to those at the paths in `frozen`."""
    flat = flatten_dict(variables)
    return unflatten_dict(flat | {path: jax.lax.stop_gradient(flat[path]) for path in frozen}) if frozen else variables


def _call(
    layer: type[Layer],
    settings: StackSettings,
    group: Group,
    rest: Sequence[Any],
    mutable: list[str],
    probes: Variables,
    remat: bool,
) -> Callable[[Variables, Array, Keys], tuple[Array, Variables]]:
    """The function of one layer: (variables, x, keys) -> (output, new values of the mutable collections)."""

    def compute(variables: Variables, x: Array, keys: Keys) -> tuple[Array, Variables]:
        y, changed = layer(group.layer, parent=None).apply(variables, x, *rest, rngs=keys, mutable=mutable)
        return y, {**changed, **({"intermediates": {"output": y}} if "intermediates" in mutable else {})}

    if remat:
        compute = jax.checkpoint(compute, prevent_cse=False)

    def forward(variables: Variables, x: Array, keys: Keys) -> tuple[Array, Variables]:
        if not keys or group.letter != "R" or settings.backskip == "off":
            return compute(variables, x, keys)
        if settings.backskip == "policy" and "policy" not in probes:
            y, changed = compute(variables, x, keys)
            return (observed(y, probes["reports"]) if probes else y), changed
        # `rest` has the encoded source, if the layer reads it
        y, changed = compute(variables, jax.lax.stop_gradient(x), keys)
        if settings.backskip == "policy":
            noise = jax.random.key_data(jax.random.fold_in(keys["dropout"], 1))
            return proposed(x, y, probes["policy"], probes["reports"], noise), changed
        return _replace(x, y), changed

    def dropped_or_not(variables: Variables, x: Array, keys: Keys) -> tuple[Array, Variables]:
        if not keys or not settings.layerdrop:
            return forward(variables, x, keys)
        pairs = jax.tree.map(jax.random.split, keys)
        inner = jax.tree.map(lambda pair: pair[1], pairs)
        dropped = jax.random.bernoulli(pairs["dropout"][0], settings.layerdrop)
        return jax.lax.cond(dropped, lambda x: x, lambda x: forward(variables, x, inner)[0], x), {}

    return dropped_or_not


@jax.custom_vjp
def _replace(x: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
    """`y`; its gradient also goes to `x`, as if the output were `x`. None is computed for a `y` that depends on nothing trained."""
    return y


_replace.defvjp(lambda x, y: (y, None), lambda _, gradient: (gradient, gradient))
