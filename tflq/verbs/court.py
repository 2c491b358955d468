"""`court`: every profile and installed runtime on one model: who gives the same bits, and who parts from whom where."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.comparison.court import RUNTIME, Hearing, Pool, Tensors, find_groups, find_partings, judge
from tflq.comparison.goldens.golden import runnable
from tflq.comparison.goldens.record import observe
from tflq.comparison.inputs.prepare import preparation
from tflq.comparison.inputs.read import Feed, Feeds, make_feeds
from tflq.engine.api.files import Source, Subject, subject
from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter import run as run_plan
from tflq.engine.kernels.kernel import EXACT
from tflq.engine.profiles import PROFILES
from tflq.engine.profiles import by_name as profile_by_name
from tflq.engine.runtimes import FOREIGN, RUNTIMES, named
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.errors import OptionError, RuntimeMissing, TflqError, UnsupportedError, brief
from tflq.interrupts import Progress, silent
from tflq.model.ir import Model, Signed, signed, view

#: The system that others are described against if it takes part: LiteRT's reference kernels.
REFERENCE = "litert-ref"


def court(
    model: Source | Model,
    systems: Sequence[str] = (),
    inputs: Feed = None,
    *,
    samples: int = 1,
    seed: int = 0,
    signature: str | None = None,
    python: str | None = None,
    progress: Progress = silent,
) -> Hearing:
    """Run a model under many systems on the same inputs; group them by output bits, and find where they part.

    Systems part at an operator if they have the same inputs there and give other outputs. The number of systems in a
    group decides nothing: the reference, to which groups are compared, is `litert-ref` if it takes part. The operator's
    formula judges each parting: `Parting.ruling` names the parts that no rounding explains.

    Args:
        model: A path, the bytes of a file, or a Model.
        systems: Profiles, and runtimes or foreign systems as "runtime:NAME" or by a name that no profile has. Empty:
            all profiles, and the runtimes that are installed here.
        inputs: The source of inputs, as for `verify`. None: generated from `seed`.
        samples: The number of samples to generate.
        seed: The seed of generated inputs.
        signature: The signature to run, if the model has several.
        python: The Python in which runtimes are installed, if not this one.
        progress: Called as progress(what, done, total).

    Raises:
        InputError: The inputs do not fit the model.
        OptionError: The model has several signatures, and none is named.
        UnknownNameError: There is no profile, runtime or signature of that name.
        UnsupportedError: The inputs are steps that depend on each other.

    Example:
        >>> model = "golden/models/digits_mobilenet_int8.tflite"
        >>> found = tflq.court(model, ["litert-ref", "litert-opt", "tflm-cmsis-nn-single"], samples=8)
        >>> found.groups[0].systems[0], len(found.groups) > 1
        ('litert-ref', True)
    """
    target = subject(model)
    parts = signed(target.model, signature)
    if len(parts) != 1:
        raise OptionError(f"the model has {len(parts)} signatures: name one of {', '.join(p.name for p in parts)}")
    names = [_resolve(name) for name in systems] or _list_present(python)
    feeds = make_feeds(parts, inputs, samples, seed, preparation(None, None))
    if any(fed.carried or fed.continues for fed in feeds.steps):
        raise UnsupportedError("court of a model with state", reason="its steps depend on each other: use tflq session")
    ran: dict[str, Tensors] = {}
    pool = Pool()
    failed: dict[str, str] = {}
    loose: list[str] = []
    for number, name in enumerate(dict.fromkeys(names)):
        progress("running", number, len(names))
        try:
            if name.startswith(RUNTIME):
                ran[name] = _run_runtime(target, parts, feeds, name, python, pool)
            else:
                ran[name], is_loose = _run_profile(parts[0].model, feeds, name, pool)
                loose += [name] * is_loose
            lacking = next((t for one in ran[name] for t in view(parts[0].model).outputs if t not in one), None)
            if lacking is not None:
                del ran[name]
                failed[name] = f"gives no value of output {view(parts[0].model).tensors[lacking].name or lacking}"
        except RuntimeMissing as error:
            failed |= {name: brief(error)} if systems else {}
        except TflqError as error:
            failed[name] = brief(error)
    reference = REFERENCE if REFERENCE in ran else next(iter(ran), "")
    given = [dict(zip(view(parts[0].model).inputs, fed.sample, strict=True)) for fed in feeds.steps]
    found = find_partings(parts[0].model, ran, pool)
    partings = tuple(judge(parts[0].model, parting, ran, pool, given) for parting in found)
    groups = tuple(find_groups(parts[0].model, ran, reference, partings, pool))
    return Hearing(target.facts, feeds.facts, len(feeds.steps), reference, groups, partings, failed, tuple(loose))


def _resolve(name: str) -> str:
    """Return the name of a system: that of a profile, or a runtime's after `runtime:`."""
    if not name.lower().startswith(RUNTIME):
        try:
            return profile_by_name(name).name
        except TflqError:
            if name.endswith((".yaml", ".yml")):
                raise
    return RUNTIME + named(name).name


def _list_present(python: str | None) -> list[str]:
    """Return all profiles, and the runtimes that are installed here or may be in the named Python."""
    runtimes = [runtime.name for runtime in (*RUNTIMES.values(), *FOREIGN.values()) if not runtime.is_absent]
    if python is not None:
        runtimes = list(RUNTIMES)
    return [*PROFILES, *(RUNTIME + name for name in runtimes)]


def _run_profile(model: Model, feeds: Feeds, name: str, pool: Pool) -> tuple[Tensors, bool]:
    """Return a profile's tensors, and whether it promises less than every bit of an output."""
    plan = make_plan(model, profile_by_name(name))
    found, is_loose = [], False
    for fed in feeds.steps:
        trace = run_plan(plan, dict(zip(plan.inputs, fed.sample, strict=True)), keep_all=True)
        is_loose |= any(trace.promise(tensor) != EXACT for tensor in plan.outputs)
        found.append(pool.put(trace.values))
    return tuple(found), is_loose


def _run_runtime(
    target: Subject, parts: Sequence[Signed], feeds: Feeds, name: str, python: str | None, pool: Pool
) -> Tensors:
    """Return a runtime's tensors; outputs are those of the unchanged model."""
    runtime = runtime_by_name(name.removeprefix(RUNTIME), python=python)
    runnable(parts, runtime)
    golden = observe(target, runtime, feeds, all_tensors=True)
    outputs = view(parts[0].model).outputs
    return tuple(pool.put({**one.tensors, **dict(zip(outputs, one.outputs))}) for one in golden.observations)  # noqa: B905
