"""The tables of embeddings and of positions."""

from dataclasses import dataclass

from one_layer.data.special_tokens import PAD
from one_layer.models.keys.blocks import BlockKeys
from one_layer.models.keys.shape import one_of
from one_layer.system.errors import UserError, check_least


@dataclass(frozen=True)
class TableKeys(BlockKeys):
    """A dense model has trained tables, and a masked one masked tables, unless `embedding` says otherwise."""

    embedding: str | None = one_of("masked", "frozen", "trained", default=None)
    embedding_source: str = one_of("text", "run", "fairseq", "roberta")
    embedding_path: str = ""
    embedding_vocabulary: str = ""
    shared_embedding: bool = False
    embedding_norm: bool = False
    positions: str = one_of("sinusoidal", "learned", "frozen")
    max_positions: int = 512

    def follows(self) -> dict[str, object]:
        """The values of keys that were not given."""
        return {**super().follows(), "embedding": "masked" if self.masked else "trained"}

    @property
    def table_kind(self) -> str:
        """The kind of the embedding tables, in the terms of `one_layer.layers.matrix.matrix`."""
        return "fixed" if self.embedding == "frozen" else str(self.embedding)

    @property
    def position_rows(self) -> int:
        """The rows of the position table, as in RoBERTa: a pad has its own id as position, the first token pad + 1. Without a table 0."""
        return 0 if self.positions == "sinusoidal" else self.max_positions + PAD + 1

    def check(self) -> None:
        """Raises: UserError as `ShapeKeys.check` does."""
        super().check()
        check_least("model", self, max_positions=1)
        self.check_fits_modern("positions", "sinusoidal")
        source, path = self.embedding_source, self.embedding_path
        if not self.masked and self.embedding == "masked":
            raise UserError(
                "model.embedding is 'masked' in a dense model; use 'trained' or 'frozen', or mask the layers too"
            )
        if path and self.embedding == "trained":
            raise UserError(
                f"model.embedding_path is {path!r:.200}, but model.embedding is 'trained'; pre-trained tables stay fixed: give "
                "frozen or masked"
            )
        if source != "text" and not path:
            raise UserError(
                f"model.embedding_source is {source!r:.200}, but model.embedding_path is empty; give the file or folder, or leave "
                "model.embedding_source out"
            )
        if self.positions == "frozen" and source != "roberta":
            raise UserError(
                f"model.positions is 'frozen', which needs model.embedding_source=roberta (it is {source!r:.200}); give that and its "
                "model.embedding_path, or learned or sinusoidal positions"
            )
        if self.embedding_vocabulary and source not in ("fairseq", "roberta"):
            raise UserError(
                f"model.embedding_vocabulary is {self.embedding_vocabulary!r:.200}, but with model.embedding_source={source} the tokens "
                "are stored with the vectors; leave it out, or give model.embedding_source=fairseq or roberta"
            )
