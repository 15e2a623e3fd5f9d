"""Reports updates that were skipped because their loss or gradient was not finite."""

from __future__ import annotations

import logging
from typing import Any

import optax

from one_layer.training.metrics import MetricsLog

log = logging.getLogger(__name__)

MOST_IN_A_ROW = 10  # updates that are skipped; after so many, the run ends
MEND = "training has diverged; lower optim.lr, lengthen optim.warmup or set optim.clip, in a new --workdir"


def report(
    metrics: MetricsLog,
    step: int,
    seconds: float,
    epoch_updates: int,
    read: dict[str, float],
    params: Any,
    in_a_row: int,
) -> None:
    """Logs a skipped update, and writes it into the metrics: its batch, its loss, and the norms of gradient and parameters.

    `read`: the sums of the update as numbers. `params`: the parameters, which the update has not changed.
    """
    epoch, batch = divmod(step - 1, epoch_updates)
    values = {
        "skipped/epoch": epoch + 1,
        "skipped/batch": batch + 1,
        "skipped/targets": read["targets"],
        "skipped/loss": read["loss"],
        "skipped/gradient_norm": read["norm"],
        "skipped/parameter_norm": float(optax.tree.norm(params)),
        "skipped/in_a_row": in_a_row,
    }
    log.warning(
        "update %d is not applied: its loss is %g and the norm of its gradient is %g (batch %d of epoch %d, %d targets; norm of the "
        "parameters %.4g; %d such updates in a row)",
        *(step, read["loss"], read["norm"], batch + 1, epoch + 1, read["targets"]),
        *(values["skipped/parameter_norm"], in_a_row),
    )
    metrics.write(step, seconds, values)
