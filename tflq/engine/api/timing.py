"""Time the operators of an interpreter."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from tflq.engine.api.interpreter import Interpreter
from tflq.engine.interpreter.timing import Times

#: Least and largest number of runs.
_LEAST, _MOST = 3, 1000


def operator_times(interpreter: Interpreter, subgraph: int, seconds: float) -> list[tuple[int, float]]:
    """Run a subgraph on its present inputs for about `seconds`; return operators with the median of their seconds.

    The subgraph must have run twice, so that it is timed in the form in which it is invoked again and again.

    Raises:
        TflqError: See Interpreter.invoke.
    """
    session = interpreter._session(subgraph)
    runs: list[Times] = []
    end = perf_counter() + seconds
    while len(runs) < _LEAST or (perf_counter() < end and len(runs) < _MOST):
        runs.append(session.time_operators())
    return [(index, median(run[index] for run in runs)) for index in runs[0]]
