"""What the keys of a model may be, by themselves and together. Errors name the keys as users type them: `model.keep`.

What fits a family of networks is checked by the family (`one_layer.models.families`), and what fits a stack of layers where the stack is
made (`one_layer.models.layers`).
"""

from __future__ import annotations

from one_layer.data.special_tokens import UNK
from one_layer.initializers import SCHEMES
from one_layer.layers.beside import GAINS
from one_layer.layers.freezing import STACKS
from one_layer.layers.quantization import PRECISIONS
from one_layer.layers.settings import ACTIVATIONS, BLOCKS, NORMS, ROTARY_BASE
from one_layer.models.keys import PARTS, SHARING, ModelKeys
from one_layer.supermask import MOST_COATS, SELECTIONS
from one_layer.system.errors import UserError, check_least

_KNOWN: dict[str, tuple[str, ...]] = {
    "weights": tuple(SHARING),
    "norm_position": ("post", "pre"),
    "block": ("paper", "modern"),
    "selection": SELECTIONS,
    "score_init": ("uniform", "constant", "constant_noisy"),
    "gains": tuple(GAINS),
    "embedding": ("masked", "frozen", "trained"),
    "embedding_source": ("text", "run", "fairseq", "roberta"),
    "positions": ("sinusoidal", "learned", "frozen"),
    "activation": tuple(ACTIVATIONS),
    "norm": NORMS,
    "reservoir": BLOCKS,
    "reservoir_conv": ("lightweight", "dynamic"),
    "reservoir_direction": ("auto", "both", "past"),
    "dtype": ("float32", "bfloat16"),
    "trained_precision": PRECISIONS,
    "vector_precision": PRECISIONS,
    "init_preset": ("paper", "reference", "corrected"),
    "init_scheme": tuple(SCHEMES),
    "init_attention": ("scheme", "xavier", "xavier_constant"),
    "init_embedding": ("", *SCHEMES),
}
_RATES = ("dropout", "attention_dropout", "activation_dropout", "head_dropout", "layerdrop")  # probabilities
_DEEPEST = 2**12  # layers in a stack


def check(keys: ModelKeys) -> None:
    """Raises: UserError, which names the key, for a value that no model has, and for values that do not fit together."""
    for key, known in _KNOWN.items():
        if getattr(keys, key) not in known:
            raise UserError(f"model.{key} is {getattr(keys, key)!r:.200}; known are {', '.join(filter(None, known))}")
    for key in _RATES:
        if not 0.0 <= getattr(keys, key) < 1.0:
            raise UserError(f"model.{key} is {getattr(keys, key)}; it must lie in [0, 1)")
    for one in (
        _check_modern,
        _check_sizes,
        _check_sharing,
        _check_keep,
        _check_settled,
        _check_coats,
        _check_masks,
        _check_embeddings,
        _check_skipping,
    ):
        one(keys)


def _check_modern(keys: ModelKeys) -> None:
    needed = {"norm_position": "pre", "activation": "relu", "positions": "sinusoidal", "bias": False}
    for name, value in needed.items():
        if keys.modern and getattr(keys, name) != value:
            raise UserError(
                f"model.{name} is {getattr(keys, name)!r:.200}, but model.block is 'modern' (pre-norm, SwiGLU, rotary positions, no "
                f"biases); give model.{name}={value}, or model.block=paper"
            )
    if not keys.modern and keys.rotary_base != ROTARY_BASE:
        raise UserError(
            f"model.rotary_base is {keys.rotary_base}, but model.block is {keys.block!r}, which has no rotary positions; leave "
            "model.rotary_base out, or give model.block=modern"
        )
    if not 1.0 < keys.rotary_base <= 1e9:
        raise UserError(f"model.rotary_base is {keys.rotary_base}; it must lie in (1, 10**9]")
    if not 0.0 < keys.norm_epsilon < 1.0:
        raise UserError(f"model.norm_epsilon is {keys.norm_epsilon}; it must lie in (0, 1)")


def _check_sizes(keys: ModelKeys) -> None:
    check_least("model", keys, d_model=1, ffn=1, heads=1, max_positions=1)
    for name in ("source_vocab", "target_vocab"):
        if getattr(keys, name) <= UNK:
            raise UserError(
                f"model.{name} is {getattr(keys, name)}; it must be at least 4, for the four special tokens"
            )
    if keys.d_model % keys.heads:
        raise UserError(f"model.heads is {keys.heads}, which does not divide model.d_model {keys.d_model}")
    if keys.modern and keys.d_model // keys.heads % 2:
        raise UserError(
            f"model.heads is {keys.heads}, and model.d_model / model.heads is {keys.d_model // keys.heads}; rotary positions need an "
            "even number of features in a head"
        )
    if keys.d_model % 2 or keys.d_model < 4:
        raise UserError(f"model.d_model is {keys.d_model}; sinusoidal positions need an even width of at least 4")
    if not 1 <= keys.reservoir_width < 2**10:
        raise UserError(
            f"model.reservoir_width is {keys.reservoir_width}; it must be a number of positions from 1 to 1023"
        )
    for stack in STACKS:  # the family says which it needs
        number = getattr(keys, f"{stack}_layers")
        if isinstance(number, int) and not 0 <= number <= _DEEPEST:
            raise UserError(f"model.{stack}_layers is {number}; it must lie in [0, {_DEEPEST}]")
    for (
        stack,
        string,
    ) in keys.strings.items():  # after the numbers: one may stand for more letters than the memory holds
        if len(string) > _DEEPEST:
            raise UserError(f"model.{stack}_layers has {len(string)} letters; it must have at most {_DEEPEST}")


def _check_sharing(keys: ModelKeys) -> None:
    if keys.sharing not in SHARING[keys.weights]:
        raise UserError(
            f"model.sharing is {keys.sharing!r:.200}, which does not fit model.weights={keys.weights}; give "
            f"{' or '.join(SHARING[keys.weights])}"
        )


def _check_keep(keys: ModelKeys) -> None:
    for key in ("keep", *(f"keep_{part}" for part in PARTS)):
        if (value := getattr(keys, key)) is not None and not 0.0 < value <= 1.0:
            raise UserError(
                f"model.{key} is {value}; it must lie in (0, 1], as the fraction of the weights that masks keep"
            )
    for part, value in keys.supermask.parts:
        key = f"model.keep_{part}"
        if not keys.masked:
            raise UserError(f"{key} is {value}, but model.weights is dense, which has no masks; leave {key} out")
        if not keys.supermask.exact:
            raise UserError(
                f"{key} is {value}, but with model.selection={keys.selection} the scores decide how much is kept; leave {key} out, or "
                "give model.selection=magnitude or score"
            )
        if part == "embedding" and keys.embedding != "masked":
            raise UserError(
                f"{key} is {value}, but model.embedding is {keys.embedding!r}, whose tables have no masks; leave {key} out"
            )


def _check_settled(keys: ModelKeys) -> None:
    shares = {key: getattr(keys, key) for key in ("pruned", "locked")}
    for key, value in shares.items():
        if not 0.0 <= value < 1.0:
            raise UserError(
                f"model.{key} is {value}; it must lie in [0, 1), as the share of the weights that the seed settles"
            )
    given = " and ".join(f"model.{key} {value}" for key, value in shares.items() if value)
    if not given:
        return
    if sum(shares.values()) >= 1.0:
        raise UserError(f"{given} leave no weight for the scores to choose; their sum must be below 1")
    if not keys.masked:
        raise UserError(
            f"{given} settle weights under masks, but model.weights is dense, which has no masks; leave them out"
        )
    if keys.selection not in ("magnitude", "score", "sign"):
        raise UserError(f"{given} need model.selection=magnitude, score or sign; it is {keys.selection}")
    if keys.sharing == "masks":
        raise UserError(
            f"{given} settle other weights in each of the layers, but with model.sharing=masks these share one mask; give "
            "model.sharing=none, or model.weights=one_layer"
        )
    own = {f"keep_{part}": keep for part, keep in keys.supermask.parts}
    for key, keep in ({"keep": keys.keep} | own).items() if keys.supermask.exact else ():
        if not shares["locked"] < keep < 1.0 - shares["pruned"]:
            raise UserError(
                f"model.{key} is {keep}, a share of all weights, but with {given} masks keep more than {shares['locked']:g} and less than "
                f"{1 - shares['pruned']:g} of them; give a share in between"
            )


def _check_coats(keys: ModelKeys) -> None:
    if not 1 <= keys.coats <= MOST_COATS:
        raise UserError(
            f"model.coats is {keys.coats}; it must lie in [1, {MOST_COATS}], as the number of masks that add up"
        )
    if keys.coats == 1:
        return
    given = f"model.coats is {keys.coats}, but"
    if not keys.masked:
        raise UserError(f"{given} model.weights is dense, which has no masks; leave model.coats out")
    if not keys.supermask.exact:
        raise UserError(
            f"{given} model.selection={keys.selection} has no coats, because model.keep does not decide its masks; give "
            "model.selection=magnitude or score, or model.coats=1"
        )
    if keys.dynamic_scale:
        raise UserError(f"{given} model.dynamic_scale counts ones; leave one of them out")
    if keys.pruned or keys.locked:
        raise UserError(
            f"{given} weights that the seed settles (model.pruned, model.locked) have one coat; leave one of them out"
        )


def _check_masks(keys: ModelKeys) -> None:
    if (keys.selection, keys.score_init, keys.score_constant) == ("magnitude", "constant", 0.0):
        raise UserError(
            "model.score_init=constant with model.score_constant=0 never trains with model.selection=magnitude: the gradient of a "
            "score is that of its magnitude, which is 0 at 0; give another constant"
        )
    if keys.selection == "sigmoid_threshold" and not 0.0 < keys.threshold < 1.0:
        raise UserError(
            f"model.threshold is {keys.threshold}; it is compared with a sigmoid, so it must lie in (0, 1), for instance 0.5"
        )
    if keys.selection == "sign" and not (keys.keep == 1.0 and not keys.dynamic_scale):
        raise UserError(
            f"model.selection='sign' drops no weight: give model.keep=1 (it is {keys.keep}), and no model.dynamic_scale"
        )
    if keys.selection == "signed_threshold" and not (keys.threshold >= 0.0 and not keys.dynamic_scale):
        raise UserError(
            f"model.selection='signed_threshold' needs a model.threshold of at least 0 (it is {keys.threshold}) and no "
            "model.dynamic_scale, which counts ones"
        )
    if not 0 <= keys.adapter_rank <= keys.d_model:
        raise UserError(f"model.adapter_rank is {keys.adapter_rank}; it must lie in [0, model.d_model {keys.d_model}]")
    for key, value, none in (("gains", keys.gains, "none"), ("adapter_rank", keys.adapter_rank, 0)):
        if value != none and not keys.masked:
            raise UserError(
                f"model.{key} is {value!r}, but model.weights is dense, whose matrices are trained themselves; leave model.{key} out"
            )
    if not (keys.init_qk_gain or 0.0) > 0.0:
        raise UserError(f"model.init_qk_gain is {keys.init_qk_gain}; it must be above 0 (1 changes nothing)")


def _check_embeddings(keys: ModelKeys) -> None:
    source, path = keys.embedding_source, keys.embedding_path
    if keys.weights == "dense" and keys.embedding == "masked":
        raise UserError(
            "model.embedding is 'masked' in a dense model; use 'trained' or 'frozen', or mask the layers too"
        )
    if path and keys.embedding == "trained":
        raise UserError(
            f"model.embedding_path is {path!r:.200}, but model.embedding is 'trained'; pre-trained tables stay fixed: give "
            "frozen or masked"
        )
    if source != "text" and not path:
        raise UserError(
            f"model.embedding_source is {source!r:.200}, but model.embedding_path is empty; give the file or folder, or leave "
            "model.embedding_source out"
        )
    if keys.positions == "frozen" and source != "roberta":
        raise UserError(
            f"model.positions is 'frozen', which needs model.embedding_source=roberta (it is {source!r:.200}); give that and its "
            "model.embedding_path, or learned or sinusoidal positions"
        )
    if keys.embedding_vocabulary and source not in ("fairseq", "roberta"):
        raise UserError(
            f"model.embedding_vocabulary is {keys.embedding_vocabulary!r:.200}, but with model.embedding_source={source} the tokens are "
            "stored with the vectors; leave it out, or give model.embedding_source=fairseq or roberta"
        )


def _check_skipping(keys: ModelKeys) -> None:
    if keys.backskip not in ("off", "identity", "policy"):
        raise UserError(f"train.backskip is {keys.backskip!r:.200}; known are off, identity and policy")
    if keys.backskip != "off" and not any("R" in string.upper() for string in keys.strings.values()):
        raise UserError(
            f"train.backskip is {keys.backskip!r:.200}, but neither model.encoder_layers nor model.decoder_layers has a reservoir "
            "(R); give a layer string with R, or train.backskip=off"
        )
