"""`learn`: a device's arithmetic, learned by questions or from dumps, as a profile."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from tflq.devices.conformance.targets import target_of
from tflq.devices.learning.candidates import Effort
from tflq.devices.learning.findings import Findings
from tflq.devices.learning.kept import Kept
from tflq.devices.learning.learner import learn as learn_target
from tflq.devices.learning.passive import learn_from_dumps
from tflq.devices.learning.subjects import known_operators, subjects
from tflq.diagnosis.signatures import only_dumps
from tflq.engine.api.subject import subject
from tflq.errors import OptionError, UnknownNameError
from tflq.progress import Progress, silent

#: Types of codes whose arithmetic can be learned.
TYPES = ("int8", "uint8", "int16")


def learn(
    target: str | None = None,
    *,
    dumps: Sequence[str | os.PathLike[str]] = (),
    models: Sequence[str | os.PathLike[str]] = (),
    operators: Collection[str] = (),
    types: Collection[str] = (),
    seed: int = 0,
    fresh: int = Effort().fresh,
    most: int = 100_000,
    work: str | os.PathLike[str] | None = None,
    keep: bool = True,
    python: str | None = None,
    timeout: float = 600.0,
    progress: Progress = silent,
) -> Findings:
    """Learn a device's arithmetic; `tflq.devices.learning.profile.text_of` writes what was found as a profile.

    Ctrl-C ends the questions, and what is known by then is returned.

    Args:
        target: A ready target (docs/targets.md), a command that runs single-operator models (docs/target-protocol.md),
            runtime:NAME or profile:NAME.
        dumps: Instead of a target, dumps of a device.
        models: The model of each dump.
        operators: The operators to learn. Empty: all that can be learned.
        types: The types of codes: "int8", "uint8", "int16". Empty: int8.
        seed: The seed of scales, weights and inputs.
        fresh: Number of fresh models on which each answer is checked.
        most: The number of models after which nothing more is asked.
        work: A folder that keeps answers, so that an interrupted run can go on. None: none is kept.
        keep: Keep the folder when the run has ended and everything was asked.
        python: The Python in which the runtime is installed, if not this one.
        timeout: Seconds allowed for a call of the target.
        progress: Called as progress(what, done, total).

    Raises:
        InputError: A dump does not fit its model.
        OptionError: Neither a target nor dumps are given, or not a model for each dump.
        UnknownNameError: There is no operator or type of that name that can be learned.
        RuntimeMissing, RuntimeFailed: There is no such target, or it cannot be started.

    Example:
        >>> dump = "golden/dumps/digits_mobilenet_int8.cmsis_single.npz"
        >>> found = tflq.learn(dumps=[dump], models=["golden/models/digits_mobilenet_int8.tflite"])
        >>> len(found.operators) > 0
        True
    """
    if (target is None) == (not dumps) or len(dumps) != len(models):
        raise OptionError("expected --target CMD, or --dump PATH and --model FILE once for each dump")
    if target is None:
        parts = [only_dumps(subject(m).model, os.fspath(d)) for d, m in zip(dumps, models, strict=True)]
        return learn_from_dumps(
            [(p.model, samples) for p, samples in parts], ", ".join(os.fspath(path) for path in dumps)
        )
    for word in types:
        if word not in TYPES:
            raise UnknownNameError("type of codes", word, TYPES)
    named = tuple(word.upper() for word in operators)
    for word in named:
        if word not in known_operators():
            raise UnknownNameError("operator that can be learned", word, known_operators())
    system = target_of(target, python, timeout)
    wanted = subjects(tuple(types) or ("int8",), named)
    if not wanted:
        raise OptionError(f"no operator named has the types {', '.join(types)}")
    kept = None if work is None else Kept(os.fspath(work), system.identity())
    found = learn_target(system, wanted, Effort(fresh=fresh, seed=seed), most=most, progress=progress, kept=kept)
    if kept is not None and not keep and not found.is_partial:
        kept.remove()
    return found
