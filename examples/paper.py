"""The paper in one file: one random layer that nothing trains, a mask over it for each depth, and a loop that trains the masks.

.venv/bin/python -m examples.paper

It learns to translate the built-in language, from a side that looks like German to one that looks like English.
"""

from collections.abc import Callable
from typing import Any

import jax
import optax

from one_layer.data.batches import TrainingBatches
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.loading import load
from one_layer.layers.materializing import Variables, materialize
from one_layer.models import ModelConfig, build, initialize
from one_layer.supermask import Supermask
from one_layer.tasks.losses import label_smoothed_nll
from one_layer.tasks.translation.generate import translated
from one_layer.tasks.translation.settings import SearchSettings


def toy() -> tuple[Corpus, ModelConfig]:
    """The built-in language, and a model of two encoder and two decoder layers for it."""
    corpus = load(DataConfig(toy_train=8000, toy_valid=10, toy_test=100))
    source_vocab, target_vocab = map(len, corpus.vocabularies)
    shape = ModelConfig(source_vocab, target_vocab, d_model=128, ffn=256, encoder_layers=2, decoder_layers=2)
    return corpus, shape.replace(init_scheme="xavier_uniform")


def train(
    corpus: Corpus,
    config: ModelConfig,
    mask: Supermask,
    updates: int,
    lr: float = 4e-3,
    drawn: Callable[[Variables, jax.Array | None], Variables] = lambda scores, key: scores,
    penalty: Callable[[Variables], jax.Array | float] = lambda scores: 0.0,
) -> tuple[Variables, list[float]]:
    """Trains the masks of a model. Returns its variables, with the masks applied, and the loss of each update, in nats per token.

    Masks are selected by what `drawn` makes of the scores: of an update's key, or of None in the end. `penalty` is added to the loss.
    """
    network, variables = build(config), initialize(config, seed=1)
    scores, random = variables["params"], variables["random"]  # the seed gives both, and only the scores will change
    optimizer = optax.adam(optax.warmup_cosine_decay_schedule(0.0, lr, updates // 8, updates), b2=0.98)

    def masked(scores: Variables) -> Variables:
        """W ⊙ M in the place of each matrix W. Every depth has a mask M of its own, which keeps the W with the largest scores."""
        return materialize({"params": scores, "random": random}, mask)

    def loss(scores: Variables, batch: Variables, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        logits = network.apply(masked(drawn(scores, key)), batch["source"], batch["target_in"])
        smoothed, nll, tokens = label_smoothed_nll(logits, batch["target"], 0.1)
        return smoothed / tokens + penalty(scores), nll / tokens

    @jax.jit
    def update(scores: Variables, moments: Any, batch: Variables, key: jax.Array) -> tuple[Variables, Any, jax.Array]:
        # The gradient passes straight through each mask to its scores.
        gradient, nll = jax.grad(loss, has_aux=True)(scores, batch, key)
        changes, moments = optimizer.update(gradient, moments)
        return optax.apply_updates(scores, changes), moments, nll

    sides = corpus.train.source, corpus.train.target
    batches = TrainingBatches(*sides, max_tokens=1024, accumulate=1, buckets=2, seed=1)
    moments, losses = optimizer.init(scores), []
    for number in range(updates):
        batch = {name: array[0] for name, array in batches[number].items()}
        scores, moments, nll = update(scores, moments, batch, jax.random.key(number))
        losses.append(float(nll))
        if number % 50 == 49:
            print(f"update {number + 1}: loss {nll:.3f}")
    return jax.jit(masked)(drawn(scores, None)), losses


def test(corpus: Corpus, config: ModelConfig, variables: Variables) -> float:
    """Prints three translations of the test set. Returns the share of translations that equal the reference."""
    split = corpus.tests["test"]
    found = translated(config, SearchSettings(beam=1), variables, split.source)
    lines = list(map(corpus.target_vocabulary.decode, found))
    for number in range(3):
        print(f"{split.source_text[number]} -> {lines[number]} (reference: {split.reference[number]})")
    return sum(map(str.__eq__, lines, split.reference)) / len(lines)


def main(updates: int = 400) -> tuple[list[float], float]:
    corpus, config = toy()
    variables, losses = train(corpus, config, Supermask(keep=0.5), updates)
    right = test(corpus, config, variables)
    print(f"{right:.0%} of the test sentences are translated word for word as the reference")
    return losses, right


if __name__ == "__main__":
    main()
