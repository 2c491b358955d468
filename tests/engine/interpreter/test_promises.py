"""What results are promised to be: never more than what they are made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.toys import PROFILE, graph, ints, tensor
from tflq.engine.interpreter import make_plan, run
from tflq.engine.kernels.kernel import EXACT, SAME_LIBM, Exactness, close
from tflq.engine.profiles import Profile

MEASURED, UNMEASURED = close("an order of sums", 4), close("an order of sums")


@pytest.mark.parametrize(
    ("own", "sources", "want"),
    [
        (EXACT, [], EXACT),
        (EXACT, [EXACT, SAME_LIBM], SAME_LIBM),
        (SAME_LIBM, [EXACT], SAME_LIBM),
        (MEASURED, [SAME_LIBM], MEASURED),
        (EXACT, [MEASURED, EXACT], UNMEASURED),  # how a difference grows was never measured
        (close("other", 9), [MEASURED], UNMEASURED),
    ],
)
def test_a_result_is_worth_what_it_is_made_of(own: Exactness, sources: list[Exactness], want: Exactness) -> None:
    assert own.after(sources) == want


def promising(**promises: Exactness) -> Profile:
    """The toys' profile, whose operators promise what is given."""
    rows = {
        op: tuple(replace(row, exactness=promises.get(op, EXACT)) for row in PROFILE.kernels[op])
        for op in PROFILE.kernels
    }
    return replace(PROFILE, kernels=rows)


def test_promises_follow_the_graph() -> None:
    model = graph([tensor()] * 5, [("COPY", [0], [1]), ("ADD", [1, 2], [3]), ("COPY", [3], [4])], [0, 2], [1, 4])
    plan = make_plan(model, promising(ADD=MEASURED))
    assert dict(plan.promises) == {1: EXACT, 3: MEASURED, 4: UNMEASURED}
    assert [step.promise for step in plan.steps] == [EXACT, MEASURED, EXACT]
    trace = run(plan, {0: ints(1, 2), 2: ints(3, 4)})
    assert [trace.promise(t) for t in (0, 1, 4)] == [EXACT, EXACT, UNMEASURED]
    assert trace.values[4].dtype == np.int32
