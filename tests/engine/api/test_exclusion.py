"""Threads: one interpreter refuses two at once, two interpreters do not disturb each other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.each import each
from support.sweeping import few
from support.toys import PROFILE, graph, tensor
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.table import table
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import SignatureDef
from tflq.typing import Array


class Door:
    """An interpreter whose one operator waits until it is let through."""

    def __init__(self) -> None:
        self.entered, self.opened = Event(), Event()
        profile = replace(PROFILE, kernels=table((Kernel("WAIT", "any -> any", self._prepare),)))
        signature = SignatureDef("serve", (("x", 0),), (("y", 1),))
        model = graph([tensor(), tensor()], [("WAIT", [0], [1])], [0], [1], signatures=[signature])
        self.interpreter = tflq.Interpreter(model_content=model, profile=profile)
        self.interpreter.allocate_tensors()

    def _prepare(self, node: Node, arithmetic: Arithmetic) -> Prepared:
        def wait(data: object, x: Array) -> Array:
            self.entered.set()
            assert self.opened.wait(60)
            return x

        return Prepared((node.input(0).shape,), None, wait)

    @contextmanager
    def used(self, use: Callable[[], object]) -> Iterator[None]:
        """While another thread is in `use`, which comes to an invocation."""
        other = Thread(target=use)
        other.start()
        assert self.entered.wait(60)
        try:
            yield
        finally:
            self.opened.set()
            other.join()


def calls(interpreter: tflq.Interpreter) -> dict[str, Callable[[], object]]:
    runner, view = interpreter.get_signature_runner(), interpreter.tensor(0)
    return {
        "allocate_tensors": interpreter.allocate_tensors,
        "invoke": interpreter.invoke,
        "reset_all_variables": interpreter.reset_all_variables,
        "resize_tensor_input": lambda: interpreter.resize_tensor_input(0, [3]),
        "set_tensor": lambda: interpreter.set_tensor(0, np.zeros(2, np.int32)),
        "get_tensor": lambda: interpreter.get_tensor(1),
        "promise": lambda: interpreter.promise(1),
        "tensor": view,
        "get_input_details": interpreter.get_input_details,
        "get_output_details": interpreter.get_output_details,
        "get_tensor_details": interpreter.get_tensor_details,
        "get_signature_runner": interpreter.get_signature_runner,
        "_get_ops_details": interpreter._get_ops_details,
        "_get_op_details": lambda: interpreter._get_op_details(0),
        "runner": lambda: runner(x=np.zeros(2, np.int32)),
        "runner's get_input_details": runner.get_input_details,
        "runner's get_output_details": runner.get_output_details,
    }


@each("name", calls(Door().interpreter))
def test_a_call_while_another_thread_is_in_one(name: str) -> None:
    door = Door()
    call = calls(door.interpreter)[name]
    with door.used(door.interpreter.invoke), pytest.raises(tflq.errors.StateError, match="another thread"):
        call()
    call()


def test_every_method_is_tried() -> None:
    free = {"tensor", "num_subgraphs", "get_signature_list"}  # they look at the model alone, which never changes
    methods = {name for name, value in vars(tflq.Interpreter).items() if callable(value) and not name.startswith("_")}
    assert methods - free <= calls(Door().interpreter).keys()


def test_a_refused_call_leaves_the_other_as_it_was() -> None:
    door = Door()
    door.interpreter.set_tensor(0, np.array([1, 2], np.int32))
    with door.used(door.interpreter.invoke), pytest.raises(tflq.errors.StateError):
        door.interpreter.set_tensor(0, np.array([3, 4], np.int32))
    assert door.interpreter.get_tensor(1).tolist() == [1, 2]


def test_a_whole_call_of_a_signature_excludes_others() -> None:
    door = Door()
    runner = door.interpreter.get_signature_runner()
    with door.used(lambda: runner(x=np.array([1, 2], np.int32))), pytest.raises(tflq.errors.StateError):
        door.interpreter.get_tensor(1)


def test_threads_may_take_turns() -> None:
    interpreter = tflq.Interpreter(
        model_content=graph([tensor(), tensor()], [("DOUBLE", [0], [1])], [0], [1]), profile=PROFILE
    )
    for number in range(3):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(interpreter.allocate_tensors).result()
            thread.submit(interpreter.set_tensor, 0, np.array([number, 1], np.int32)).result()
        interpreter.invoke()
        assert interpreter.get_tensor(1).tolist() == [2 * number, 2]


def test_a_failed_call_excludes_nobody() -> None:
    interpreter = tflq.Interpreter(
        model_content=graph([tensor(), tensor()], [("DOUBLE", [0], [1])], [0], [1]), profile=PROFILE
    )
    with pytest.raises(tflq.errors.StateError, match="allocate_tensors"):
        interpreter.invoke()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(interpreter.allocate_tensors).result()


# --- two interpreters -------------------------------------------------------------------------------------------------

NETWORKS = ("digits_mobilenet_int8", "digits_lstm_int8", "digits_autoencoder_int16x8", "digits_unet_int8")


def in_threads(*jobs: Callable[[], Any]) -> list[Any]:
    """What each job gives, all begun at the same moment."""
    begin = Barrier(len(jobs))

    def after(job: Callable[[], Any]) -> Any:
        begin.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as threads:
        return [running.result() for running in [threads.submit(after, job) for job in jobs]]


def outputs(model: tflq.model.ir.Model, seeds: range) -> list[bytes]:
    """Outputs of one interpreter for several inputs."""
    interpreter = tflq.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    made = []
    for seed in seeds:
        for detail in interpreter.get_input_details():
            drawn = np.random.default_rng(seed).integers(-128, 128, detail["shape"])
            interpreter.set_tensor(detail["index"], drawn.astype(detail["dtype"]))
        interpreter.invoke()
        made += [interpreter.get_tensor(detail["index"]).tobytes() for detail in interpreter.get_output_details()]
    return made


@pytest.mark.parametrize("name", few(NETWORKS, "digits_mobilenet_int8", "digits_lstm_int8"))
def test_interpreters_of_one_model_in_four_threads(name: str) -> None:
    model = tflq.load(suites.ROOT / "golden" / "models" / f"{name}.tflite")
    parts = [range(start, start + 12) for start in range(4)]
    alone = [outputs(model, part) for part in parts]
    assert len(set(map(bytes, alone[0]))) > 1
    assert in_threads(*[lambda part=part: outputs(model, part) for part in parts]) == alone


FIRST_CALLS = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from engine.api.test_exclusion import in_threads, outputs
import tflq
model = tflq.load({model!r})
made = in_threads(*[lambda: outputs(model, range(3))] * 4)
assert all(each == made[0] for each in made)
print(made[0][0].hex())
"""


def test_the_first_calls_of_a_process_in_four_threads(tmp_path: Path) -> None:
    """Kernels are imported, and their loops compiled, by whoever comes first."""
    model = suites.ROOT / "golden" / "singleop" / "models" / "add_i8_0.tflite"
    code = FIRST_CALLS.format(tests=str(Path(__file__).parents[2]), model=str(model))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert bytes.fromhex(done.stdout.strip()) == outputs(tflq.load(model), range(1))[0]
