"""LiteRT with one resolver in a child process, so that a model that makes it abort ends the child only."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from opfuzz.case import Case
from opfuzz.worker import invoke

Array = np.ndarray[Any, Any]


def serve(connection: Connection, resolver: str) -> None:
    """Answer (model, samples) with the outputs of every sample, or None where LiteRT refuses."""
    from ai_edge_litert import interpreter as runtime

    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    while True:
        try:
            model, samples = connection.recv()
        except EOFError:
            return
        try:
            interpreter = runtime.Interpreter(
                model_content=model, num_threads=1,
                experimental_op_resolver_type=getattr(runtime.OpResolverType, resolver),
            )  # fmt: skip
            interpreter.allocate_tensors()
            connection.send([invoke(interpreter, sample) for sample in samples])
        except (ValueError, RuntimeError):
            connection.send(None)


class Resolver:
    """One resolver of LiteRT."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("forkserver")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self._name), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, case: Case) -> list[list[Array]] | None:
        """Outputs of every sample; None where LiteRT refuses or ends."""
        self._connection.send((case.model(), case.samples))
        try:
            outputs: list[list[Array]] | None = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            self._start()
            return None
        return outputs

    def close(self) -> None:
        """End the child."""
        self._connection.close()
        self._process.kill()
        self._process.join()
