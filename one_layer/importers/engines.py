"""The formats of other engines that `--mode=export` writes: one function for all, so that a folder is there whole or not at all."""

import logging
from pathlib import Path

from one_layer.importers import ctranslate2, huggingface
from one_layer.system.errors import UserError
from one_layer.system.files import check_new, new_folder
from one_layer.tasks.model import TrainedModel

log = logging.getLogger(__name__)

_FORMATS = {"ctranslate2": ctranslate2, "huggingface": huggingface}


def check(format: str, folder: Path, precision: str) -> None:
    """Checks what can be checked before the model is read. Raises: UserError for a missing package, a folder in the way, or a precision
    that the format does not have.
    """
    if precision not in (known := _FORMATS[format].PRECISIONS):
        raise UserError(f"--precision={precision} does not fit --format={format}, which has {' and '.join(known)}")
    check_new(folder, "--output")
    if format == "ctranslate2":
        ctranslate2.import_package()


def export(model: TrainedModel, format: str, folder: Path, precision: str = "float32") -> None:
    """Writes `model` into the new `folder` in the format of another engine.

    Raises: UserError as `check` does, and for a model that the format cannot hold; then nothing is left behind.
    """
    check(format, folder, precision)
    with new_folder(folder, "--output") as unfinished:
        _FORMATS[format].write(model, unfinished, precision)
    log.info("%s holds update %d (%s) in the format %s", folder, model.step, model.source, format)
