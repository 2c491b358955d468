"""The subjects that run a variant: tflq, or LiteRT itself. Each returns one word for the outcome."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from modelfuzz.variants import Variant

#: Limits of tflq for one variant.
MEMORY_BYTES, WORK = 64 << 20, 10**9
#: Number of elements up to which an input is filled.
_FILLED = 1 << 20

Subject = Callable[[Variant, bytes], str]


def tflq(variant: Variant, data: bytes) -> str:
    """Load, allocate and run under one of the profiles, in turn; return "!..." for a forbidden outcome."""
    from fuzz_bounds import is_outside

    from tflq.engine.api.interpreter import Interpreter
    from tflq.engine.profiles import PROFILES
    from tflq.errors import OperatorFailed, TflqError

    names = list(PROFILES)
    profile = names[variant.number % len(names)] if variant.number % 2 else "litert-ref"
    try:
        interpreter = Interpreter(model_content=data, profile=profile, memory_limit=MEMORY_BYTES, work_limit=WORK)
        first, second = _use(interpreter, variant.number)
    except OperatorFailed as error:
        if is_outside(error.__cause__):
            return f"!outside of an array: {error}"
        return "failed" if _is_raised(error.__cause__) else f"!unforeseen: {error}"
    except TflqError as error:
        return f"refused: {type(error).__name__}"
    except Exception as error:
        return f"!untyped: {type(error).__name__}: {error}"
    if interpreter._session(0)._state.routine and first != second:  # sharing of planned arrays must not be visible
        return "!differs: the second run from the first"
    return "ran"


def _is_raised(error: BaseException | None) -> bool:
    """Return whether a `raise` statement of tflq raised it: a value for which an operator has no result."""
    frames = traceback.extract_tb(None if error is None else error.__traceback__)
    return bool(frames) and "tflq" in frames[-1].filename and (frames[-1].line or "").startswith("raise ")


def litert(variant: Variant, data: bytes) -> str:
    """Load, allocate and run with the reference kernels."""
    from ai_edge_litert import interpreter as runtime

    resolver = runtime.OpResolverType.BUILTIN_REF
    try:
        interpreter = runtime.Interpreter(model_content=data, num_threads=1, experimental_op_resolver_type=resolver)
        _use(interpreter, variant.number)
    except (ValueError, RuntimeError, TypeError, NotImplementedError) as error:
        return f"refused: {type(error).__name__}"
    except Exception as error:
        return f"!untyped: {type(error).__name__}"
    return "ran"


def _use(interpreter: Any, seed: int) -> tuple[list[bytes], list[bytes]]:
    """Allocate, feed, run twice from the same variables and read, as a user does; return the outputs of both runs."""
    interpreter.allocate_tensors()
    stream = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        shape, dtype = tuple(map(int, detail["shape"])), np.dtype(detail["dtype"])
        if math.prod(shape) <= _FILLED and dtype.kind in "biuf":
            numbers = stream.integers(-3, 100, shape) if stream.random() < 0.5 else stream.integers(0, 3, shape)
            interpreter.set_tensor(detail["index"], np.asarray(numbers.astype(dtype)))
    first = _outputs(interpreter)
    interpreter.reset_all_variables()
    return first, _outputs(interpreter)


def _outputs(interpreter: Any) -> list[bytes]:
    """Return the bytes of the outputs of one more run."""
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(d["index"])).tobytes() for d in interpreter.get_output_details()]


SUBJECTS: dict[str, Subject] = {"tflq": tflq, "litert": litert}
