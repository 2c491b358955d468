"""The choice of the best configuration, and results kept on the way.

The choice of the best configuration, judged without labels on samples that none of them has seen.

No fixed configuration is safe: ranges that rescue one model ruin another. Models are judged by the values that decide
their outputs. For a first output of SOFTMAX these are its inputs, since its coarse output hides differences; otherwise
the outputs themselves. Candidates are ranked by the mean KL divergence between the float model's distribution and
theirs. A difference smaller than its standard error is a tie, and ties are broken by the best signal-to-noise ratio.
Outputs that are not distributions are ranked by this ratio alone.

Models with several outputs, or with outputs that join parts of different meanings, are judged by the sum of the errors
of all parts, each in units of its own signal, so the worst part decides (`anchors`).

If the recipe names several runtimes, each sample's loss is the mean over them. Ties are then broken by the fewest score
elements that differ between the runtimes, and after that by the ratio.

`judge.contest` chooses these samples, and decides when a candidate is dropped.

Results of candidates, logged to a file on the way, so that a stopped run can resume from there.

The file is JSON, one object per line. The first line holds the inputs on which the run depends (model, recipe, samples,
version). Each later line is an entry for a finished piece of work, in order. Numbers are written so that the same
float64 is read back. The work of a truncated line is repeated. A run that reaches its end deletes the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

import numpy as np

from tflq.errors import FileAccessError, InputError, TflqError
from tflq.model.flatbuf.writer import parts
from tflq.model.ir import Model
from tflq.model.storage.kinds import read_bytes
from tflq.quantization.frontier import Sample
from tflq.quantization.recipe import Methods, Recipe
from tflq.quantization.recipe_files import digest, plain, record_from
from tflq.typing import Reals

T = TypeVar("T")

#: Divergences that differ by less than this share, or by less than this many nats, always count as a tie.
EVEN, NEGLIGIBLE = 0.02, 1e-4
#: Shares of other samples of which a ratio is promised, the greatest that the samples allow, and the confidence.
SHARES, CONFIDENCE = (0.95, 0.9, 0.8, 0.5), 0.95
#: A candidate is dropped if it is behind by more than this many standard errors.
SURE = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """The result of a candidate, sample by sample: KL divergences [N] in nats (None: no distribution), and noise."""

    divergences: Reals | None
    signal: float  # sum of squares of the float model's scores
    noise: float  # sum of squares of the differences
    same: int  # samples with the same greatest score
    samples: int
    noises: Reals = field(default_factory=lambda: np.zeros(0))  # sum of squares of the differences by sample, [N]
    differing: int = 0  # elements of the scores that differ between a further runtime and the first
    groups: tuple[tuple[str, Reals], ...] = ()  # parts of outputs: errors in units of their mean signal by sample, [N]

    @property
    def losses(self) -> Reals:
        """Losses by sample, [N]: the divergence, or the noise if there is no distribution."""
        return self.noises if self.divergences is None else self.divergences

    @property
    def sqnr(self) -> float:
        """Signal-to-noise ratio over all samples, dB."""
        return 10 * math.log10(max(self.signal, 1e-300) / max(self.noise, 1e-300))

    @property
    def promise(self) -> tuple[float, float] | None:
        """A share of other samples, and the ratio (dB) of the mean signal to the noise that each of them keeps.

        It holds for any distribution with this confidence, if nothing was chosen by these samples: the k-th greatest
        of n noises bounds a share p of all noises with the probability that at least k of n samples lie above that
        share (Wilks 1941). There is no such bound on the mean, which a few samples may decide. None for too few.
        """
        count = len(self.noises)
        for share in SHARES:
            above = [math.comb(count, k) * (1 - share) ** k * share ** (count - k) for k in range(count + 1)]
            ranks = [k for k in range(1, count + 1) if sum(above[k:]) >= CONFIDENCE]
            if ranks:
                noise = float(np.sort(self.noises)[-ranks[-1]])
                return share, 10 * math.log10(max(self.signal / count, 1e-300) / max(noise, 1e-300))
        return None

    @property
    def ratios(self) -> dict[str, float]:
        """Signal-to-noise ratios of the parts of outputs by name, dB; the worst first."""
        found = {name: -10 * math.log10(max(float(noises.mean()), 1e-30)) for name, noises in self.groups}
        return dict(sorted(found.items(), key=lambda item: item[1]))


@dataclass(frozen=True, slots=True)
class Left:
    """When a configuration was dropped, and the ratio of its loss to the best's.

    It was dropped after a number of `turns`, or in the heat of `samples`; with `ranges_alone`, because its ranges
    without refinement lost that much.
    """

    ratio: float
    turns: int = 0
    samples: int = 0
    ranges_alone: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A configuration and its score; `error` is the reason if there is no score.

    `left` is set if it was dropped before all samples had judged it. Its score covers the samples until then, and is
    None if it was not built. `proof` is the score of the chosen one on samples that judged no configuration.
    """

    methods: Methods
    score: Score | None
    error: str = ""
    left: Left | None = None
    proof: Score | None = None

    @property
    def divergence(self) -> float:
        """Mean KL divergence to the float model's distribution, nats; NaN if there is no distribution."""
        divergences = None if self.score is None else self.score.divergences
        return math.nan if divergences is None else float(divergences.mean())

    @property
    def sqnr(self) -> float:
        """Signal-to-noise ratio of the scores, dB; -inf without a model."""
        return -math.inf if self.score is None else self.score.sqnr

    @property
    def differing(self) -> int:
        """Number of score elements that differ between the first and any other runtime."""
        return 0 if self.score is None else self.score.differing

    @property
    def agreement(self) -> float:
        """Share of samples with the same greatest score; NaN if there is no distribution."""
        if self.score is None or self.score.divergences is None:
            return math.nan
        return self.score.same / self.score.samples


def join(scores: Sequence[Score]) -> Score:
    """Return the score over all samples of several scores."""
    known = [s.divergences for s in scores if s.divergences is not None]
    names = [name for name, _ in scores[0].groups] if scores else []
    groups = [(name, np.concatenate([dict(s.groups)[name] for s in scores])) for name in names]
    return Score(
        np.concatenate(known) if known else None,
        sum(s.signal for s in scores),
        sum(s.noise for s in scores),
        sum(s.same for s in scores),
        sum(s.samples for s in scores),
        np.concatenate([s.noises for s in scores]),
        sum(s.differing for s in scores),
        tuple(groups),
    )


def ranked(candidates: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """Return the candidates: the best first, then those that were dropped, then those without a model."""
    known = [c for c in candidates if c.score is not None and not c.left]
    gone = [*(c for c in candidates if c.left), *(c for c in candidates if c.score is None and not c.left)]
    if not known:
        return tuple(gone)
    if any(math.isnan(c.divergence) for c in known):
        known.sort(key=lambda c: -c.sqnr)
        if not any(c.differing for c in known):
            return (*known, *gone)
    else:
        known.sort(key=lambda c: c.divergence)
    best = known[0]
    even = [c for c in known if _even(c, best)]
    behind = [c for c in known if not _even(c, best)]
    return (*sorted(even, key=lambda c: (c.differing, -c.sqnr)), *behind, *gone)


def is_far_behind(candidate: Score, best: Score, times: float) -> bool:
    """Return whether a candidate lost significantly more than `times` what the best lost, over the same samples.

    The difference must exceed SURE standard errors of the mean of the paired differences.
    """
    behind = candidate.losses - times * best.losses
    error = float(behind.std() / math.sqrt(len(behind)))
    negligible = 0.0 if candidate.divergences is None else NEGLIGIBLE
    return float(behind.mean()) > max(SURE * error, negligible)


def is_even(candidate: Score, best: Score) -> bool:
    """Return whether a candidate's difference to the best is within what the samples can distinguish."""
    behind = candidate.losses - best.losses
    error = float(behind.std() / math.sqrt(max(1, len(behind))))
    if best.divergences is None:
        return not len(behind) or float(behind.mean()) <= error
    return float(behind.mean()) <= max(error, EVEN * float(best.divergences.mean()), NEGLIGIBLE)


def _even(candidate: Ranked, best: Ranked) -> bool:
    assert candidate.score is not None
    assert best.score is not None
    return is_even(candidate.score, best.score)


SCHEMA = "tflq/quantize-journal/2"
#: The inputs on which a run depends, in words.
NAMES = {"model": "model", "recipe": "recipe", "samples": "calibration data", "tflq": "version of tflq"}


class Journal:
    """Entries by key; nothing is kept without a path."""

    def __init__(self, path: str | os.PathLike[str] | None, run: Mapping[str, str]) -> None:
        """Read the journal at `path` of the run that depends on `run`; if there is no file, begin it.

        Raises:
            InputError: The file is not a journal, or belongs to another run: the message names the difference.
            FileAccessError: It cannot be read or written.
        """
        self._path = None if path is None else Path(path)
        self._entries: dict[str, Any] = {}
        self.kept = False  # whether the file stays after a complete run
        if self._path is None:
            return
        head = {"schema": SCHEMA, **run}
        try:
            lines = read_bytes(self._path).splitlines(keepends=True) if self._path.exists() else []
        except OSError as error:
            raise FileAccessError(self._path, error.strerror or str(error)) from error
        whole = [line for line in lines if line.endswith(b"\n")]
        if lines and not (len(lines) == 1 and _line(head).startswith(lines[0])):  # truncated in the first line
            self._require(_read(lines[0]), head)
        for number, line in enumerate(whole[1:], 2):
            entry = _read(line)
            if entry.get("mark") != _mark(entry["key"], entry["value"]):
                raise InputError(f"{self._path}: line {number} was changed since it was noted; move that file away")
            self._entries[entry["key"]] = entry["value"]
        with suppress(FileNotFoundError):
            os.truncate(self._path, sum(map(len, whole)))  # without the truncated line
        if not whole:
            self._append(head)

    def get(self, key: str) -> Any:
        """Return the value of a key, None if it was never noted."""
        return self._entries.get(key)

    def note(self, key: str, value: Any) -> None:
        """Note a value that JSON can represent."""
        if self._path is not None:
            self._entries[key] = value
            self._append({"key": key, "value": value, "mark": _mark(key, value)})

    def once(self, key: str, kind: type[T], make: Callable[[], T | None]) -> T | None:
        """Return a result that is noted as the fields of its dataclass; make and note it if it is not there yet."""
        entry = self.get(key)
        if entry is not None:
            return cast(T, record_from(kind, entry, key)) if entry else None
        found = make()
        self.note(key, {} if found is None else plain(found))
        return found

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Delete the file if the run reached its end, or an error that a new run would meet again."""
        if self._path is not None and (error is None or isinstance(error, TflqError)) and not self.kept:
            self._path.unlink(missing_ok=True)

    def _append(self, document: Mapping[str, Any]) -> None:
        assert self._path is not None  # checked before
        try:
            with self._path.open("ab") as file:
                file.write(_line(document))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileAccessError(self._path, error.strerror or str(error)) from error

    def _require(self, found: Mapping[str, Any], head: Mapping[str, str]) -> None:
        """Refuse a file that is not a journal, or one that differs from `head` in the inputs it names."""
        if found.get("schema") != SCHEMA:
            raise InputError(f"{self._path}: expected a journal of tflq quantize ({SCHEMA}); move that file away")
        other = [word for field, word in NAMES.items() if found.get(field) != head[field]]
        if other:
            raise InputError(
                f"{self._path} belongs to a run with another {' and another '.join(other)}: use the same, or start "
                "over without --resume"
            )


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _mark(key: object, value: object) -> str:
    """Return a digest of an entry, which detects changed entries."""
    return hashlib.sha256(json.dumps([key, value], sort_keys=True).encode()).hexdigest()[:16]


def _read(line: bytes) -> dict[str, Any]:
    """Return the object of a line, or an empty one if it holds none."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        document = None
    return {"schema": None, "key": "", "value": None, **(document if isinstance(document, dict) else {})}


def run_facts(model: Model, recipe: Recipe, samples: Iterable[Sample]) -> dict[str, str]:
    """Return the inputs on which a run depends: digests of model, recipe and samples, and the version of tflq."""
    file, data = hashlib.sha256(), hashlib.sha256()
    for part in parts(model):
        file.update(part)
    for sample in samples:
        for tensor, values in sample.items():
            data.update(f"{tensor} {values.dtype.str} {values.shape} ".encode())
            data.update(np.ascontiguousarray(values).data if values.size else b"")
    return {"model": file.hexdigest(), "recipe": digest(recipe), "samples": data.hexdigest(), "tflq": version("tflq")}


def entry_key(what: str, methods: Methods) -> str:
    """Return the key of a candidate in a turn or heat."""
    return f"{what} {hashlib.sha256(json.dumps(plain(methods), sort_keys=True).encode()).hexdigest()}"


def entry_of(ranked: Ranked) -> dict[str, Any]:
    """Return the journal entry of a candidate's result."""
    score = ranked.score
    if score is None:
        return {"error": ranked.error}
    return {
        "divergences": None if score.divergences is None else score.divergences.tolist(),
        "signal": score.signal,
        "noise": score.noise,
        "same": score.same,
        "samples": score.samples,
        "noises": score.noises.tolist(),
        "differing": score.differing,
        "groups": [[name, noises.tolist()] for name, noises in score.groups],
    }


def rank_from(methods: Methods, entry: Mapping[str, Any]) -> Ranked:
    """Return a candidate's result, the inverse of `entry_of`."""
    if "error" in entry:
        return Ranked(methods, None, entry["error"])
    divergences = None if entry["divergences"] is None else np.array(entry["divergences"], np.float64)
    score = Score(
        divergences,
        entry["signal"],
        entry["noise"],
        entry["same"],
        entry["samples"],
        np.array(entry["noises"], np.float64),
        entry["differing"],
        tuple((name, np.array(values, np.float64)) for name, values in entry.get("groups", ())),
    )
    return Ranked(methods, score)
