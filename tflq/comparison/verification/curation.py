"""Build goldens from goldens: merge them, and prune unneeded parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tflq.comparison.inspection.difference import difference
from tflq.comparison.verification.golden import Golden, Observation
from tflq.comparison.verification.goldens import check_golden_output, load_golden, save_golden
from tflq.engine.runtimes import Description
from tflq.engine.runtimes.transport import pack
from tflq.errors import GoldenError
from tflq.model.storage.arrays import digest
from tflq.model.storage.output import PathLike
from tflq.typing import Array


def merge_goldens(paths: Sequence[PathLike], output: PathLike) -> int:
    """Merge goldens of the same model and runtime into one, samples of equal inputs once; return their number.

    Raises:
        GoldenError: They belong to different models or runtimes, or contradict each other.
        FileAccessError: A path cannot be read or written.

    Example:
        >>> golden = "golden/recorded/digits_mobilenet_int8.npz"
        >>> tflq.merge_goldens([golden, golden], "merged.npz")
        4
    """
    check_golden_output(output, paths, replaces=True)
    goldens = [load_golden(path) for path in paths]
    first = goldens[0]
    for path, golden in zip(paths, goldens, strict=True):
        for what, one, other in (
            ("model", first.model_sha256, golden.model_sha256),
            ("runtime", _runtime(first), _runtime(golden)),
            ("choice of tensors", first.tensors, golden.tensors),
        ):
            if one != other:
                raise GoldenError(f"{path}: is of another {what} than {paths[0]}")
    known: dict[object, object] = {}
    parts = [golden.chosen(_new(golden, known, str(path))) for path, golden in zip(paths, goldens, strict=True)]
    save_golden(parts, output)
    return sum(len(part.observations) for part in parts)


def prune_golden(path: PathLike, output: PathLike, *, samples: slice | None = None, drop_tensors: bool = False) -> int:
    """Write a golden with some of the samples, those of equal inputs once, and only the arrays that they use.

    Args:
        path: The golden.
        output: The path of the new golden.
        samples: The numbers of the samples to keep. None: all.
        drop_tensors: True to leave out the operators' results.

    Returns:
        The number of samples.

    Raises:
        GoldenError: No sample is left.
        FileAccessError: A path cannot be read or written.

    Example:
        >>> tflq.prune_golden("golden/recorded/digits_mobilenet_int8.npz", "first.npz", samples=slice(0, 1))
        1
    """
    check_golden_output(output, [path], replaces=True)
    golden = load_golden(path)
    golden = golden.plain() if drop_tensors else golden
    chosen = range(len(golden.observations))[samples or slice(None)]
    lost = next((k for k in chosen if golden.steps[k][1] and k - 1 not in chosen), None)
    if lost is not None:
        raise GoldenError(f"{path}: sample {lost} continues sample {lost - 1}: keep both, or neither")
    golden = golden.chosen(chosen)
    kept = _new(golden, {}, str(path))
    if not kept:
        raise GoldenError(f"{path}: no sample is left")
    save_golden([golden.chosen(kept)], output)
    return len(kept)


def _new(golden: Golden, known: dict[object, object], path: str) -> list[int]:
    """Return the samples whose inputs are not in `known`, and add them there.

    Samples that continue belong to the one that they continue: all of them are new, or none.
    """
    new, run = [], list[int]()
    before: object = None
    fresh = False
    for k, one in enumerate(golden.plain().observations):
        if not one.continues:
            new += run if fresh else []
            run, before, fresh = [], None, False
        run.append(k)
        before = inputs = (
            (before, one.signature, _name(one.inputs)) if one.signature or one.continues else _name(one.inputs)
        )
        outputs = _name(one.outputs)
        if inputs not in known:
            known[inputs] = outputs
            fresh = True
        elif known[inputs] != outputs:
            raise GoldenError(f"{path}: sample {k} has other outputs than another sample of the same inputs")
    return [*new, *(run if fresh else [])]


def _name(values: Sequence[Array | None]) -> tuple[object, ...]:
    return tuple(None if v is None else tuple(map(digest, pack("", v).values())) for v in values)


def differing_input(first: Observation, second: Observation) -> int | None:
    """Return the position of the first input in which two samples differ."""
    pairs = zip(first.inputs, second.inputs, strict=True)
    return next((i for i, (one, other) in enumerate(pairs) if not difference(one, other).same), None)


def _runtime(golden: Golden) -> dict[str, Any]:
    said = golden.runtime
    facts = asdict(said) if isinstance(said, Description) else dict(said)
    return {name: facts.get(name) for name in ("name", "package", "version", "resolver", "threads", "platform")}


def arrays_of(golden: Golden) -> tuple[int, int]:
    """Return the number of arrays in a golden, and the number of different ones."""
    count, names = 0, set[object]()
    for observation in golden.observations:
        for value in (*observation.inputs, *observation.outputs, *observation.tensors.values()):
            if value is not None:
                count += 1
                names.update(_name([value]))
    return count, len(names)
