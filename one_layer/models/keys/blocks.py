"""What a layer computes: its norms, biases, activation and dropout, and how random matrices are drawn."""

from dataclasses import dataclass

from one_layer.initializers import SCHEMES
from one_layer.layers.settings import ACTIVATIONS, NORMS, ROTARY_BASE
from one_layer.models.keys.masks import MaskKeys
from one_layer.models.keys.shape import one_of, rate
from one_layer.system.errors import UserError


@dataclass(frozen=True)
class BlockKeys(MaskKeys):
    """A dense model has biases and affine LayerNorm, and a masked one no biases and plain LayerNorm, unless these keys say otherwise.

    Preset `paper` follows the text of paper A, and `reference` its code, which also draws rows of zeros for pad. `init_embedding` can give
    random tables another scheme than `init_scheme`.
    """

    init_preset: str = one_of("paper", "reference")
    init_scheme: str = one_of(*SCHEMES, default="kaiming_uniform")
    init_attention: str | None = one_of("scheme", "xavier", "xavier_constant", default=None)
    init_embedding: str = one_of("", *SCHEMES)
    scale_by_keep: bool | None = None
    block: str = one_of("paper", "modern")
    rotary_base: float = ROTARY_BASE
    activation: str = one_of(*ACTIVATIONS)
    norm: str | None = one_of(*NORMS, default=None)
    norm_epsilon: float = 1e-5
    norm_position: str = one_of("post", "pre")
    bias: bool | None = None
    share_norm_scale: bool | None = None
    dropout: float = rate()
    attention_dropout: float = rate()
    activation_dropout: float = rate()
    head_dropout: float = rate()
    layerdrop: float = rate()

    @property
    def reference(self) -> bool:
        """Whether values begin as in the paper's code."""
        return self.init_preset == "reference"

    @property
    def modern(self) -> bool:
        """Whether layers have rotary positions and SwiGLU, and by default RMSNorm and no biases."""
        return self.block == "modern"

    def follows(self) -> dict[str, object]:
        """The values of keys that were not given."""
        plain, trained = ("rms_plain", "rms") if self.modern else ("plain", "affine")
        return {
            **super().follows(),
            "init_attention": "xavier" if self.reference else "scheme",
            "scale_by_keep": not (self.reference or self.dynamic_scale),  # each makes up for what masks leave out
            "norm": plain if self.masked else trained,
            "bias": not (self.masked or self.modern),
            "share_norm_scale": self.reference and self.weights == "one_layer",
        }

    def check(self) -> None:
        """Raises: UserError as `ShapeKeys.check` does."""
        super().check()
        if self.modern:
            self._check_modern()
        if not self.modern and self.rotary_base != ROTARY_BASE:
            raise UserError(
                f"model.rotary_base is {self.rotary_base}, but model.block is {self.block!r}, which has no rotary positions; leave "
                "model.rotary_base out, or give model.block=modern"
            )
        if not 1.0 < self.rotary_base <= 1e9:
            raise UserError(f"model.rotary_base is {self.rotary_base}; it must lie in (1, 10**9]")
        if not 0.0 < self.norm_epsilon < 1.0:
            raise UserError(f"model.norm_epsilon is {self.norm_epsilon}; it must lie in (0, 1)")

    def _check_modern(self) -> None:
        needed = {"norm_position": "pre", "activation": "relu", "bias": False}
        for name, value in needed.items():
            self.check_fits_modern(name, value)
        if self.d_model // self.heads % 2:
            raise UserError(
                f"model.heads is {self.heads}, and model.d_model / model.heads is {self.d_model // self.heads}; rotary positions need an "
                "even number of features in a head"
            )

    def check_fits_modern(self, name: str, value: object) -> None:
        """Raises: UserError if a key has another value than this one in a modern block."""
        given = getattr(self, name)
        if self.modern and given != value:
            raise UserError(
                f"model.{name} is {given!r:.200}, but model.block is 'modern' (pre-norm, SwiGLU, rotary positions, no biases); give "
                f"model.{name}={value}, or model.block=paper"
            )
