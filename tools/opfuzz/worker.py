"""The program in the child process: it runs LiteRT on one case after the other, until the pipe closes or LiteRT dies.

A request is (model, samples); the answer is ("ran", resolver, outputs of every sample) or ("refused", resolver,
reason). If the reference resolver lacks an operator, the full one is tried.
"""

from __future__ import annotations

import os
import resource
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

#: The resolvers, in the order in which they are tried.
RESOLVERS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
#: LiteRT's messages for a resolver that lacks an operator, a version or a custom operator.
UNKNOWN = ("Didn't find op", "unresolved custom op", "Encountered unresolved")
MEMORY_BYTES = 6 << 30


def serve(connection: Connection) -> None:
    """Answer requests."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    while True:
        try:
            model, samples = connection.recv()
        except EOFError:
            return
        connection.send(answer(model, samples))


def answer(model: bytes, samples: Any) -> tuple[str, str, Any]:
    """Run one model with the first resolver that knows its operator."""
    result: tuple[str, str, Any] = ("refused", "", "")
    for name in RESOLVERS:
        try:
            return "ran", name, _run(model, samples, name)
        except (ValueError, RuntimeError, TypeError, NotImplementedError, MemoryError) as error:
            result = ("refused", name, f"{type(error).__name__}: {error}")
            if not any(word in result[2] for word in UNKNOWN):
                break
    return result


def _run(model: bytes, samples: Any, resolver: str) -> list[list[Any]]:
    from ai_edge_litert import interpreter as runtime

    interpreter = runtime.Interpreter(
        model_content=model, num_threads=1, experimental_op_resolver_type=getattr(runtime.OpResolverType, resolver)
    )
    interpreter.allocate_tensors()
    return [invoke(interpreter, sample) for sample in samples]


def invoke(interpreter: Any, sample: Any) -> list[Any]:
    """Run an interpreter of either kind, whose inputs have their final shapes."""
    for detail, value in zip(interpreter.get_input_details(), sample, strict=True):
        if value.size:
            interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [_read(interpreter, detail) for detail in interpreter.get_output_details()]


def _read(interpreter: Any, detail: Any) -> Any:
    if 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    return np.array(interpreter.get_tensor(detail["index"]))
