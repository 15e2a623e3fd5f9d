"""What accelerators can do, by their makers' data, and XLA's descriptions of machines that have them."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from one_layer.system.cuda_graphs import PLUGINS
from one_layer.system.errors import UserError

PACKAGES = "pip install -r requirements-ahead.txt"


@dataclass(frozen=True)
class Chip:
    """One accelerator. Sizes in bytes, rates in bytes or operations a second, times in seconds.

    - `operations`: of products with bfloat16 factors, without sparsity; `float32_operations`: with float32 factors, as JAX computes them by
      default (in TF32 on GPUs; six passes in bfloat16 on TPUs with the highest precision, and one by default).
    - `link`: what a chip sends to the others of its machine (or pod), in one direction; `network`: to other machines.
    - `launch`: what the start of one kernel costs inside a CUDA graph, an assumption and no maker's data. A TPU starts a whole program at
      once.
    """

    platform: str
    memory: float
    bandwidth: float
    operations: float
    float32_operations: float
    link: float
    network: float
    together: int  # chips of one machine, or of one pod
    launch: float = 0.0
    xla: str = ""  # fields of XLA's description of a GPU


_GPU: dict[str, Any] = {"platform": "cuda", "together": 8, "launch": 2e-6}
_HOPPER = (
    "core_count: 132 clock_rate_ghz: 1.98 l2_cache_size: 52428800 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448 "
    "cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES } device_interconnect_info { active_links: 18 }"
)
_AMPERE = (
    "core_count: 108 clock_rate_ghz: 1.41 l2_cache_size: 41943040 shared_memory_per_core: 167936 shared_memory_per_block_optin: 166912 "
    "cuda_compute_capability { major: 8 } device_interconnect_info { active_links: 12 }"
)
# By NVIDIA's data sheets of the A100 80GB SXM, the H100 SXM and the H200 SXM, and Google Cloud's pages on TPU v5e and v6e.
CHIPS = {
    "a100": Chip(
        **_GPU, memory=80e9, bandwidth=2.039e12, operations=312e12, float32_operations=156e12, link=300e9, network=25e9,
        xla=_AMPERE,
    ),
    "h100": Chip(
        **_GPU, memory=80e9, bandwidth=3.35e12, operations=989e12, float32_operations=494e12, link=450e9, network=50e9,
        xla=_HOPPER,
    ),
    "h200": Chip(
        **_GPU, memory=141e9, bandwidth=4.8e12, operations=989e12, float32_operations=494e12, link=450e9, network=50e9,
        xla=_HOPPER,
    ),
    "v5e": Chip(
        platform="tpu", memory=16e9, bandwidth=819e9, operations=197e12, float32_operations=197e12, link=200e9, network=3.1e9,
        together=256,
    ),
    "v6e": Chip(
        platform="tpu", memory=32e9, bandwidth=1638e9, operations=918e12, float32_operations=918e12, link=400e9, network=3.1e9,
        together=256,
    ),
}  # fmt: skip
_TPU_SHAPES = {1: "1x1", 4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
# Without a driver's version, XLA keeps conditions and loops out of CUDA graphs.
_VERSIONS = (
    'driver_version: "12.9.0" runtime_version: "12.9.0" compile_time_toolkit_version: "12.9.0" dnn_version: "9.10.0"'
)
_LIMITS = (
    "threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 threads_per_core_limit: 2048 fpus_per_core: 128 "
    "block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 registers_per_core_limit: 65536 "
    "registers_per_block_limit: 65536 thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64 device_address_bits: 64 "
    'ecc_enabled: true device_vendor: "NVIDIA Corporation" pcie_bandwidth: 34359738368'
)


@dataclass(frozen=True)
class Target:
    """A machine, or several: `number` chips of one kind."""

    name: str
    chip: Chip
    number: int

    @classmethod
    def of(cls, name: str) -> Target:
        """The target with this name, such as h100, h100x8 or v5e-256. Raises: UserError for another name."""
        kind, _, number = name.partition("-" if name.startswith("v") else "x")
        chip = CHIPS.get(kind)
        count = int(number) if re.fullmatch("[1-9][0-9]{0,4}", number) else int(name == kind)
        allowed = chip is not None and (
            count in _TPU_SHAPES if chip.platform == "tpu" else count % 8 == 0 or count in (1, 2, 4)
        )
        if chip is None or not count or not allowed:
            raise UserError(
                f"--target={name:.60} is unknown; give one of {', '.join(each for each in CHIPS if each[0] != 'v')} with x2, x4, x8 or a "
                f"multiple of 8, such as h100x8, or one of {', '.join(each for each in CHIPS if each[0] == 'v')} with "
                f"{', '.join(f'-{count}' for count in _TPU_SHAPES)}, such as v5e-8"
            )
        return cls(name, chip, count)

    def devices(self) -> Sequence[Any]:
        """Descriptions of the target's devices, for which JAX can compile. Raises: UserError without the packages for it."""
        plugins = {"cuda": PLUGINS, "tpu": ("libtpu",)}[self.chip.platform]
        if not any(map(importlib.util.find_spec, plugins)):
            raise UserError(
                f"--target={self.name} needs the package {plugins[0].replace('_', '-')}; {PACKAGES} installs it"
            )
        from jax.experimental import topologies  # late: it looks for plugins when it is imported

        kind = self.name.partition("-")[0]
        if self.chip.platform == "tpu":
            os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # there is no machine to ask what it is
            one = {"chips_per_host_bounds": (1, 1, 1)} if self.number == 1 else {}
            return list(topologies.get_topology_desc(f"{kind}:{_TPU_SHAPES[self.number]}", "tpu", **one).devices)
        machines = max(1, self.number // self.chip.together)
        shape = f"1x{machines}x{self.number // machines}"
        return list(
            topologies.get_topology_desc(platform="cuda", target_config=self._description(), topology=shape).devices
        )

    def _description(self) -> str:
        """XLA's description of the GPU, as text in the format of protocol buffers."""
        memory = f"memory_bandwidth: {self.chip.bandwidth:.0f} device_memory_size: {self.chip.memory:.0f}"
        name = f"NVIDIA {self.name.partition('x')[0].upper()}"
        return (
            f'gpu_device_info {{ name: "{name}" {memory} {_LIMITS} {_VERSIONS} {self.chip.xla} }} platform_name: "CUDA" '
            f'dnn_version_info {{ major: 9 minor: 10 }} runtime_version {{ major: 12 minor: 9 }} device_description_str: "{name}"'
        )
