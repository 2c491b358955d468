"""Goldens at any path: `.npz` archives, and bundles in a folder, a zip archive or at a URL."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from tflq.comparison.verification.archive import load_archive, model_of_archive
from tflq.comparison.verification.bundle import (
    MANIFEST,
    is_archive_of_files,
    is_bundle,
    is_bundle_name,
    load_bundle,
    manifest,
    save_bundle,
)
from tflq.comparison.verification.golden import Golden
from tflq.errors import GoldenError
from tflq.model.storage.output import PathLike, check_apart, check_outputs
from tflq.model.storage.remote import check_remote, is_url, local_path
from tflq.model.storage.stores import check_folder, is_zip


def load_golden(path: PathLike) -> Golden:
    """Read a golden. Samples of a bundle are read on demand.

    Raises:
        GoldenError: It is not a golden, or is damaged.
        FileAccessError: It cannot be read.

    Example:
        >>> len(tflq.load_golden("golden/recorded/digits_mobilenet_int8.npz").observations)
        4
    """
    path = local_path(path)
    return load_bundle(path) if is_bundle(path) else load_archive(path)


def save_golden(parts: Iterable[Golden], path: PathLike) -> None:
    """Write goldens of one model as one, a bundle or an archive.

    A folder, a name that ends in .zip or /, or a URL becomes a bundle; any other path an archive. See `save_bundle` for
    `parts`.
    """
    if is_bundle_name(path):
        save_bundle(path, parts)
        return
    first, *others = parts
    whole = reduce(Golden.together, others, first)
    observations = tuple(one for part in (first, *others) for one in part.observations)
    replace(whole, observations=observations).save(local_path(path))


def check_golden_output(path: PathLike, sources: Iterable[PathLike] = (), *, replaces: bool) -> None:
    """Refuse a path that a golden cannot be written to, before any work is done.

    `replaces`: an existing path is refused, too.

    Raises:
        FileAccessError: Names the problem.
    """
    place, read = local_path(path), [local_path(source) for source in sources]
    local = [source for source in read if not is_url(source)]
    if is_url(place):
        check_remote(place, [source for source in read if is_url(source)], MANIFEST, replace=replaces)
    elif is_bundle_name(path) and not is_zip(place):
        check_folder(place, MANIFEST)
        check_apart(place, local)
        if os.path.isdir(place) and os.listdir(place) and not replaces:
            check_outputs([os.path.join(place, MANIFEST)])
    else:
        check_outputs([place], local, replace=replaces)


def model_of(path: PathLike) -> str:
    """Return the SHA-256 of a golden's model; "" if it names none. Raise as `load_golden`."""
    path = local_path(path)
    return str(manifest(path)["model_sha256"]) if is_bundle(path) else model_of_archive(path)


def check_model(path: PathLike, sha256: str) -> None:
    """Raise a GoldenError if a path holds a golden of another model than that of the digest; other dumps pass."""
    is_golden = is_bundle(path) and not is_archive_of_files(path)
    known = model_of(path) if is_golden or str(path).endswith(".npz") else ""
    require_model(str(path), known, sha256)


def require_model(path: str, known: str, sha256: str) -> None:
    """Raise a GoldenError if the recorded model, `known` by its digest, is not that of the other digest."""
    if known and known != sha256:
        reason = f"was recorded from another model (SHA-256 {known[:12]}..., and this one has {sha256[:12]}...)"
        raise GoldenError(f"{path}: {reason}; `tflq record` makes a golden of this one")
