"""A session as a golden: what a real runtime gives at every step, to verify without that runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from tflq.comparison.sessions.engines import RuntimeEngine, live_name
from tflq.comparison.sessions.plan import planned
from tflq.comparison.verification.feeding import Fed, Feeds
from tflq.comparison.verification.golden import Golden
from tflq.comparison.verification.goldens import check_golden_output, save_golden
from tflq.comparison.verification.observation import observe
from tflq.comparison.verification.results import InputFacts
from tflq.engine.api.files import Source
from tflq.engine.api.subject import subject
from tflq.engine.runtimes import Runtime, Step
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.errors import InputError
from tflq.model.ir import CARRIER, Model, Signed, TensorType, input_names, signed, view
from tflq.typing import Array


def record_session(
    model: Source | Model,
    runtime: str | Runtime,
    path: str | os.PathLike[str],
    prompt: Sequence[int] | None = None,
    follow: Sequence[int] = (),
    steps: int | None = None,
    inputs: str | os.PathLike[str] | Sequence[Mapping[str, Array]] | None = None,
    signature: str | None = None,
    seed: int = 0,
    python: str | None = None,
) -> Golden:
    """Run a session in a real runtime and write its steps as a golden, with the results of all operators.

    `runtime` is a name, also after "runtime:"; the other arguments are those of `compare_sessions`. Tokens that are not
    given are those that the runtime chooses.

    Raises:
        FileAccessError: `path` cannot be written; raised before anything runs.
        RuntimeMissing, RuntimeFailed: The runtime is not installed, or it refused or crashed.
    """
    check_golden_output(
        path, [source for source in (model, inputs) if isinstance(source, (str, os.PathLike))], replaces=True
    )
    target = subject(model)
    chosen = runtime_by_name(live_name(runtime) or runtime, python=python) if isinstance(runtime, str) else runtime
    plan = planned(target.model, prompt, follow, steps, inputs, signature, seed)
    forced = plan.forced(RuntimeEngine(target, chosen))
    parts = {part.signature: part for part in signed(target.model, signature)}
    fed = tuple(_feed(parts, step, k) for k, step in enumerate(forced))
    golden = observe(target, chosen, Feeds(InputFacts("session", seed, len(fed)), fed), all_tensors=True)
    save_golden([golden], path)
    return golden


def _feed(parts: Mapping[str | None, Signed], step: Step, number: int) -> Fed:
    """Return a step as goldens hold it: inputs in the order of the signature's graph."""
    if step.signature not in parts:
        raise InputError("a recording needs the inputs of a signature", got=step.signature)
    part = parts[step.signature]
    graph, names, sample = view(part.model), input_names(part.model), []
    for name, tensor in zip(names, graph.inputs, strict=True):
        spec = graph.tensors[tensor]
        empty = np.zeros(spec.shape, CARRIER[TensorType(spec.type)])
        sample.append(np.asarray(step.inputs.get(name, empty)))
    carried = tuple(i for i, name in enumerate(names) if name in step.carried)
    return Fed(part, tuple(sample), carried, continues=number > 0)
