"""How wide a model may be so that its file fits `train.bytes`, from the files of untrained models."""

import math
from bisect import bisect_right

from one_layer import tickets
from one_layer.data.corpus import Corpus
from one_layer.layers.quantization import is_matrix, stored_bytes
from one_layer.models import initialize, shapes
from one_layer.models.accounting import ticket_bytes
from one_layer.runs.settings import RunConfig, of_training, with_values
from one_layer.system.errors import UserError
from one_layer.tickets.content import to_bytes
from one_layer.training.memory import check_memory

_WIDEST = 2**14
_TRIALS = 8


def with_width(run: RunConfig, corpus: Corpus) -> tuple[RunConfig, list[str]]:
    """The run with the widest `model.d_model` whose ticket fits `train.bytes`, and a line for people.

    `model.ffn` keeps its proportion. The file of an untrained model tells what the bits, the vocabularies and the settings take. Its
    vectors are all alike, so these count as they will be: without any code.

    Raises: UserError if no width fits, and if there is too little memory for the model.
    """
    most = run.train.bytes
    widths = range(step := math.lcm(2 * run.model["heads"], 8), _WIDEST, step)
    width = max(step, run.model["d_model"] // step * step)
    for _ in range(_TRIALS):
        tried = _with_width(run, width)
        check_memory(tried, tried.model_for(corpus.vocabularies))
        size = file_bytes(tried, corpus)
        others = size - ticket_bytes(tried.model_for(corpus.vocabularies))

        def estimated(width: int, others: int = others) -> int:
            return ticket_bytes(_with_width(run, width).model_for(corpus.vocabularies)) + others

        best = widths[max(bisect_right(widths, most, key=estimated) - 1, 0)]
        if best == width:
            break
        width = best
    else:  # widths whose estimates name each other
        tried = _with_width(run, width)
        size = file_bytes(tried, corpus)
    while size > most and width > step:
        width -= step
        tried = _with_width(run, width)
        size = file_bytes(tried, corpus)
    if size > most:
        raise UserError(
            f"train.bytes={most} is too few: the narrowest model (model.d_model={step}) takes about {size:,}, also for pieces and "
            "settings; give more bytes, fewer data.bpe_merges, or fewer layers"
        )
    return tried, [
        f"chosen: model.d_model={tried.model['d_model']} and model.ffn={tried.model['ffn']} (train.bytes={most:,}: the ticket will take "
        f"about {size:,} bytes)"
    ]


def file_bytes(run: RunConfig, corpus: Corpus) -> int:
    """The bytes of the ticket of an untrained model, with its vectors as trained ones take them."""
    model = run.model_for(corpus.vocabularies)
    ticket = tickets.make(
        model,
        run.seed,
        initialize(model, run.seed),
        corpus,
        task=run.task,
        data=run.data,
        evaluation=run.evaluation,
        training=of_training(run.raw),
    )
    vectors = sum(
        stored_bytes(precision, shape)
        for path, shape in shapes(model).items()
        if path[0] == "params" and path[-1] != "scores" and not is_matrix(path[-1], shape)
        if (precision := model.precisions.of(path[-1], shape)) != "float32"  # which has no code
    )
    return len(to_bytes(ticket)[0]) + vectors


def _with_width(run: RunConfig, width: int) -> RunConfig:
    ffn = max(8, round(run.model["ffn"] * width / run.model["d_model"] / 8) * 8)
    return with_values(run, {"model.d_model": width, "model.ffn": ffn})
