"""Every row of kernels with the runtime that it reproduces: models that reach it, and every bit of their outputs.

Rows of live profiles have drawn models, which LiteRT runs, too; rows of other profiles have recorded ones.
"""

from __future__ import annotations

import itertools

import pytest

import tflq
from opfuzz.case import Case
from opfuzz.compare import difference_of
from opfuzz.families import SPECS
from opfuzz.remote_worker import invoke
from opfuzz.session import draw_case, numbers
from support import suites
from support.kernel_runs import RESOLVERS, live_outputs, recordings
from support.processors import own
from support.row_groups import Group, groups
from support.running import Array, assert_same, run
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import TflqError, UndefinedResultError

#: Number of models that reach a group, and of models drawn to find them.
ENOUGH, PATIENCE = 4, 400
SEED = 7
#: The recordings are of processes that ran one model each: its LEAKY_RELUs share the first one's alpha.
KEEPS_ALPHA = "tflq.engine.kernels.leaky_relu"
DRAWN = [group for group in groups() if group.profile() in RESOLVERS and group.op in SPECS]
RECORDED = [group for group in groups() if group.profile() and group.profile() not in RESOLVERS]


def outputs_of(case: Case, group: Group, profile: str) -> list[list[Array]] | None:
    """Outputs of every sample; None where the model is refused, promises no bits, or reaches no row of the group."""
    watched, reached = group.watched(by_name(profile))
    try:
        (step,) = make_plan(tflq.load(case.model()), watched).steps
        if step.promise.word == "close":
            return None
        interpreter = tflq.Interpreter(model_content=case.model(), profile=watched)
        interpreter.allocate_tensors()
        outputs = [invoke(interpreter, sample) for sample in case.samples]
    except TflqError:
        return None
    return outputs if reached else None


@pytest.mark.slow
@pytest.mark.parametrize("group", DRAWN, ids=lambda group: group.label)
def test_drawn_models_have_the_bits_of_the_runtime(group: Group) -> None:
    if all(row.exactness.word == "close" for row in group.rows):
        pytest.skip("promises no bits")
    profile = group.profile()
    compared = 0
    for number in itertools.islice(numbers(SEED, [group.op]), PATIENCE):
        case = draw_case(SEED, number)
        ours = outputs_of(case, group, own(profile))
        theirs = None if ours is None else live_outputs(case, profile)
        if ours is None or theirs is None:
            continue
        compared += 1
        for mine, real in zip(ours, theirs, strict=True):
            for got, want in zip(mine, real, strict=True):
                difference = difference_of(got, want)
                assert not difference, f"seed {SEED}, case {number}: {case}: {difference}"
        if compared == ENOUGH:
            return
    assert compared, f"no model reached {group.label}"


@pytest.mark.slow
@pytest.mark.parametrize("group", RECORDED, ids=lambda group: group.label)
def test_recorded_models_have_the_bits_of_the_runtime(group: Group) -> None:
    """Everything that is recorded of a group is compared, except where its rows promise no bits."""
    if all(row.exactness.word == "close" for row in group.rows):
        pytest.skip("promises no bits")
    profile = group.profile()
    keeps = group.module == KEEPS_ALPHA and by_name(profile).runtime.release == "tf-1.15"
    variant = f"{profile}+static-alpha" if keeps else profile
    compared = 0
    for recording in recordings(profile, frozenset((group.op,))):
        watched, reached = group.watched(by_name(variant))
        content = recording.path.read_bytes()
        try:
            if any(step.promise.word == "close" for step in make_plan(tflq.load(content), watched).steps):
                continue
            outputs = run(content, recording.inputs, watched)
        except UndefinedResultError:
            continue  # the runtime reads memory that nothing wrote
        except TflqError:
            if reached:
                raise
            continue
        if reached:
            assert_same(outputs, recording.outputs, f"{recording.path.name} under {profile}")
            compared += 1
    if not compared:
        pytest.skip(f"nothing recorded reaches it; {suites.missing() or 'the shared suites have nothing either'}")
