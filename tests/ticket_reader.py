"""A second reader of tickets, written from docs/ticket-format.md alone: it shares no code with the package."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from safetensors import safe_open

UNIFORM = ("kaiming_uniform", "xavier_uniform")
NORMAL = ("kaiming_normal", "xavier_normal", "normal")


class TicketReader:
    """What a file says. `weights` and `masks` by role (the latter -1, 0 and 1), `arrays` by name, `vocabularies` and `codes` by side."""

    def __init__(self, path: Path) -> None:
        with safe_open(path, "numpy") as file:
            metadata = dict(file.metadata())
            self._stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        assert metadata["format"] == "one_layer ticket" and metadata["version"] == "1"
        assert metadata.pop("digest") == self._digest(metadata)
        self._codecs = json.loads(metadata["codecs"])
        self.model, self.seed = json.loads(metadata["model"]), int(metadata["seed"])
        self.step, self.evaluation, self.data = (json.loads(metadata[n]) for n in ("step", "evaluation", "data"))
        tensors = {name: self._decoded(name) for name in self._stored}

        self.weights = {entry["role"]: self._drawn(entry) for entry in json.loads(metadata["random"])}
        for name, array in tensors.items():
            collection, _, role = name.rpartition("/")[0].partition("/")
            if name.endswith("/kernel") and collection in ("random", "frozen"):
                self.weights[role] = array
        self.arrays = {name: array for name, array in tensors.items() if array.dtype == np.float32}
        self.masks = {}
        for name, bits in tensors.items():
            kind, _, role = name.partition("/")
            if kind == "mask" or (kind == "sign" and f"mask/{role}" not in tensors):
                mask = self._mask(bits, role).astype(np.float32)
                mask = mask if kind == "mask" else np.ones_like(mask)
                if f"sign/{role}" in tensors:
                    mask[self._mask(tensors[f"sign/{role}"], role) == 1] = -1
                self.masks[role] = mask

        self.vocabularies, self.codes, self.preprocessing = {}, {}, {}
        for side, steps in json.loads(metadata["text"]).items():
            vocabulary, codes = steps.pop("vocabulary"), steps.pop("codes")
            lines = tensors[vocabulary].tobytes().decode().removeprefix("\ufeff").split("\n")[:-1]
            self.vocabularies[side] = ["<s>", "<pad>", "</s>", "<unk>", *(line.rpartition(" ")[0] for line in lines)]
            self.codes[side] = codes and tensors[codes].tobytes().decode()
            self.preprocessing[side] = steps

    def _digest(self, metadata: dict[str, str]) -> str:
        number = lambda value: value.to_bytes(8, "little")  # noqa: E731
        piece = lambda content: number(len(content)) + content  # noqa: E731
        whole = number(len(metadata))
        for name, text in sorted(metadata.items()):
            whole += piece(name.encode()) + piece(text.encode())
        whole += number(len(self._stored))
        for name, tensor in sorted(self._stored.items()):
            dtype = {"uint8": "U8", "float32": "F32"}[str(tensor.dtype)]
            for text in (name, dtype, ",".join(str(size) for size in tensor.shape)):
                whole += piece(text.encode())
            whole += piece(tensor.tobytes())
        return hashlib.blake2b(whole, digest_size=32).hexdigest()

    def _decoded(self, name: str) -> np.ndarray:
        if name not in self._codecs:
            return self._stored[name]
        codec, shape = self._codecs[name]["codec"], self._codecs[name]["shape"]
        content = zstandard.ZstdDecompressor().decompress(self._stored[name].tobytes())
        if codec == "zstd":
            return np.frombuffer(content, np.uint8).reshape(shape)
        if codec in ("bfloat16", "int8", "int4"):
            return self._numbers(codec, content, shape)
        bits = [0] * (8 * math.prod(shape))
        place = -1
        gap = 0
        for byte in content:
            gap += byte
            if byte < 255:
                place += gap + 1
                bits[place] = 1
                gap = 0
        packed = np.packbits(np.array(bits, np.uint8), bitorder="little").reshape(shape)
        return {"zstd-ones": packed, "zstd-zeros": 255 - packed}[codec]

    def _numbers(self, codec: str, content: bytes, shape: list[int]) -> np.ndarray:
        if codec == "bfloat16":
            return (np.frombuffer(content, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
        rows = math.prod(shape[:-1])
        scales = np.frombuffer(content[: 4 * rows], "<f4").reshape(*shape[:-1], 1)
        numbers = np.frombuffer(content[4 * rows :], np.int8)
        if codec == "int4":
            bytes_of_two = numbers.view(np.uint8)
            halves = np.stack([bytes_of_two % 16, bytes_of_two // 16], axis=1).reshape(-1)
            assert not halves[math.prod(shape) :].any()
            numbers = halves[: math.prod(shape)].astype(np.int8) - 8
        return numbers.reshape(shape).astype(np.float32) * scales

    def joined(self, joint: str, codec: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """The arrays in the tensor `vectors` or `adapters`, by the names and shapes that the model's settings give."""
        found, content = {}, self._decoded(joint).tobytes() if shapes else b""
        for name, shape in sorted(shapes.items()):
            rows, count = math.prod(shape[:-1]), math.prod(shape)
            size = {"bfloat16": 2 * count, "int8": 4 * rows + count, "int4": 4 * rows + (count + 1) // 2}[codec]
            found[name], content = self._numbers(codec, content[:size], list(shape)), content[size:]
        assert not content
        return found

    def _mask(self, bits: np.ndarray, role: str) -> np.ndarray:
        shape = self.weights[role].shape[-2:]
        count = math.prod(shape)
        rows = np.unpackbits(bits, axis=-1, bitorder="little")
        assert not rows[..., count:].any()
        return rows[..., :count].reshape(*bits.shape[:-1], *shape)

    def _drawn(self, entry: dict[str, Any]) -> np.ndarray:
        roles = [f"{entry['role']}#{layer}" for layer in range(entry["layers"] or 0)] or [entry["role"]]
        matrices = np.stack([self._matrix(role, entry) for role in roles])
        if entry["zero_row"] is not None:
            matrices[:, entry["zero_row"]] = 0
        matrices = matrices if entry["layers"] else matrices[0]
        assert hashlib.blake2b(matrices.astype("<f4").tobytes(), digest_size=16).hexdigest() == entry["checksum"]
        return matrices

    def _matrix(self, role: str, entry: dict[str, Any]) -> np.ndarray:
        (rows, columns), scheme, scale = entry["shape"], entry["scheme"], entry["scale"]
        key = int.from_bytes(hashlib.blake2b(f"{self.seed}/{role}".encode(), digest_size=16).digest(), "little")
        words = np.random.Philox(key=key).random_raw(3 * rows * columns).astype("<u8")
        if scheme == "orthogonal":
            sums = words.view("<u2").astype(np.int64).reshape(-1, 12).sum(axis=1) - 6 * 2**16
            q = self._orthogonal(sums, max(rows, columns), min(rows, columns))
            return (q.T if rows < columns else q) * np.float32(scale)
        inputs = entry["fan_in"] or rows
        outputs = rows * columns // inputs
        numerator, denominator = (
            (1, columns)
            if scheme == "normal"
            else (2, inputs + outputs)
            if scheme.startswith("xavier")
            else (2, inputs)
        )
        deviation = np.float32(scale * math.sqrt(numerator / denominator))
        halves = words.view("<u4")[: rows * columns]
        if scheme in UNIFORM:
            bound = np.float32(scale * math.sqrt(3 * numerator / denominator))
            integers = 2 * (halves >> 8).astype(np.int64) - 2**24
            drawn = integers.astype(np.float32) * (bound * np.float32(2.0**-24))
        elif scheme in NORMAL:
            sums = words.view("<u2").astype(np.int64).reshape(-1, 12).sum(axis=1) - 6 * 2**16
            drawn = sums.astype(np.float32) * (deviation * np.float32(2.0**-16))
        elif scheme in ("signed_constant", "xavier_constant"):
            drawn = np.where(halves >> 31, -deviation, deviation)
        else:
            assert scheme == "unsigned_constant"
            drawn = np.full(rows * columns, deviation)
        return drawn.reshape(rows, columns)

    def _orthogonal(self, sums: np.ndarray, rows: int, columns: int) -> np.ndarray:
        vectors, signs = [], []
        for k in range(columns):
            drawn, sums = sums[: rows - k], sums[rows - k :]
            x = np.rint(drawn * 2.0**-6)
            signs.append(1.0 if x[0] < 0 else -1.0)
            x[0] -= signs[k] * np.rint(np.sqrt(np.sum(x * x)))
            vectors.append(x if x.any() else np.eye(rows - k)[0])
        q = np.zeros((rows, columns))
        for k in range(columns - 1, -1, -1):
            q[k, k] = 2.0**34
            v, corner = vectors[k], q[k:, k:]
            corner -= np.rint(np.outer(v, (v @ corner) * (2 / (v @ v))))
            corner[:, 0] *= signs[k]
        return (q * 2.0**-34).astype(np.float32)
