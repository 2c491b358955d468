"""Verdicts as rows, one a case: JSON lines, or Parquet (extra `parquet`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from tflq.devices.conformance.judging import Judged
from tflq.errors import OptionError
from tflq.face.report.verbs.conform.document import case_document
from tflq.model.storage.output import written

#: Rows of a group of a Parquet file.
_GROUP = 10_000


def row(judged: Judged) -> dict[str, Any]:
    """Return a case as plain values; counts and distances are None if no elements were compared."""
    flat: dict[str, Any] = {**case_document(judged)}
    difference = flat.pop("difference") or {}
    return flat | {name: difference.get(name) for name in ("elements", "differing", "largest", "unit")}


def write_rows(path: str, cases: Iterable[Judged]) -> None:
    """Write a row a case: Parquet where the name ends in .parquet, else JSON lines.

    Raises:
        FileAccessError: The path cannot be written.
        OptionError: The extra `parquet` is not installed.
    """
    if path.endswith(".parquet"):
        _write_parquet(path, iter(cases))
        return
    with written(path) as file:
        file.writelines(json.dumps(row(judged)).encode() + b"\n" for judged in cases)


def _write_parquet(path: str, cases: Iterator[Judged]) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise OptionError(f"{path}: Parquet needs the extra parquet: pip install 'tflq[parquet]'") from error
    texts, numbers = pa.string(), pa.int64()
    kinds = dict.fromkeys(
        ("id", "op", "types", "level", "aim", "result", "reason", "unit", "fault", "mark", "digest", "outputs"), texts
    )
    kinds |= dict.fromkeys(("tells", "causes"), pa.list_(texts))
    kinds |= dict.fromkeys(("must_be_refused", "is_explained"), pa.bool_())
    kinds |= dict.fromkeys(("sample", "size", "elements", "differing", "largest"), numbers)
    schema = pa.schema(list(kinds.items()))
    with written(path) as file, parquet.ParquetWriter(file, schema) as writer:
        while group := [row(judged) for judged in islice(cases, _GROUP)]:
            writer.write_table(pa.Table.from_pylist(group, schema))
