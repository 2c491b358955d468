"""Output files of verbs: all of them checked before the work begins, and what they hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import click

force_option = click.option("-f", "--force", is_flag=True, help="Replace output files that exist.")


def check_files(outputs: Iterable[str | None], sources: Iterable[str | None], *, force: bool) -> None:
    """Refuse outputs that cannot be written, that exist without --force, or that are sources. None: not given."""
    from tflq.storage.output import check_outputs

    present = [path for path in sources if path is not None and os.path.exists(path)]
    check_outputs([path for path in outputs if path is not None], present, replace=force)


def write_text(path: str, text: str) -> None:
    """Write UTF-8 text with the same line ends on every system."""
    from tflq.escaping import valid
    from tflq.storage.output import write_file

    write_file(path, valid(text).encode())


def write_arrays(path: str, arrays: Mapping[str, Any]) -> dict[str, str]:
    """Write an `.npz` archive; returns the key of each name. Strings are stored as bytes, since nothing is pickled."""
    import numpy as np

    from tflq.storage import archive

    plain = {name: value.astype(np.bytes_) if value.dtype.kind == "O" else value for name, value in arrays.items()}
    return archive.write_arrays(path, plain)
