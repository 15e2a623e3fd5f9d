"""What a mesh of devices shares out: the time of an update on more and more CPU devices, memory of a device, and bytes between devices.

CPU devices are threads of one machine. So times say what sharing out the work costs, and not how much faster several machines are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from launch.benchmarks.workloads import PAIRS

_ROOT = Path(__file__).resolve().parents[2]
_LARGE = "wider"  # the size whose memory and transfers are computed, whatever `size` is
_MESHES = ((1, 1), (8, 1), (2, 4))


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Times updates with the same work for each device, 32 / 8 pairs; compiles `wider`, one-layer and dense, for 1 and 8 devices."""
    steps = []
    for count in (1, 2) if quick else (1, 2, 4, 8):
        each = _on_mesh(weights="one_layer", size=size, data=count, model=1, pairs=PAIRS // 8 * count, rounds=3)
        steps.append({"devices": count, "pairs": PAIRS // 8 * count, "seconds": each["seconds"]})
    for row in steps:
        row["of_one_device"] = row["seconds"] / (row["devices"] * steps[0]["seconds"])
    sharing = []
    for weights in ("one_layer", "dense"):
        for data, model in _MESHES[: 2 if quick else None]:
            each = _on_mesh(weights=weights, size=_LARGE, data=data, model=model, pairs=PAIRS, rounds=0)
            sharing.append({"weights": weights, "mesh": f"{data}x{model}", **each})
    return {"steps": steps, "sharing": sharing}


def _on_mesh(**case: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "launch.benchmarks.mesh_program", json.dumps(case)],
        cwd=_ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(case["data"] * case["model"])},
        stdout=subprocess.PIPE,
        check=True,
        encoding="utf-8",
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
