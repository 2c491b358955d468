"""Devices whose arithmetic is a profile's, and which take the wrong elements for some geometry or option."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, GraphView, TensorType, view

Array = np.ndarray[Any, Any]
WINDOWS = ("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D")
CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
PROFILES = ("litert-ref", "litert-xnnpack", "tflm", "litert-ref+single-rounding")


@dataclass(frozen=True)
class Facts:
    """The operands and options of one operator, as the device receives them."""

    op: str
    options: Mapping[str, Any]
    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]

    @property
    def odd_padding(self) -> bool:
        """SAME with an odd number of padded columns."""
        if self.op not in WINDOWS or int(self.options["padding"]) or len(self.x) != 4:
            return False
        kernel = self.options.get("filter_width") or self.w[2]
        reach = (int(kernel) - 1) * int(self.options.get("dilation_w_factor", 1)) + 1
        total = (self.y[2] - 1) * int(self.options["stride_w"]) + reach - self.x[2]
        return total > 0 and total % 2 == 1


#: Conditions under which a device is wrong, by name: the operators, and a rule.
CONDITIONS: Mapping[str, tuple[tuple[str, ...], Callable[[Facts], bool]]] = {
    "stride_h 2": (WINDOWS, lambda f: int(f.options["stride_h"]) == 2),
    "stride_w 3": (WINDOWS, lambda f: int(f.options["stride_w"]) == 3),
    "strides differ": (WINDOWS, lambda f: f.options["stride_h"] != f.options["stride_w"]),
    "odd padding": (WINDOWS, lambda f: f.odd_padding),
    "VALID": (WINDOWS, lambda f: int(f.options["padding"]) == 1),
    "dilation_h 3": (CONVOLUTIONS, lambda f: int(f.options["dilation_h_factor"]) == 3),
    "dilation_w 2": (CONVOLUTIONS, lambda f: int(f.options["dilation_w_factor"]) == 2),
    "kernel 5 rows": (CONVOLUTIONS, lambda f: f.w[1] == 5),
    "kernel not square": (CONVOLUTIONS, lambda f: f.w[1] != f.w[2]),
    "groups": (("CONV_2D",), lambda f: f.w[3] != f.x[3]),
    "multiplier 3": (("DEPTHWISE_CONV_2D",), lambda f: int(f.options["depth_multiplier"]) == 3),
    "depth 17": ((*WINDOWS, "FULLY_CONNECTED"), lambda f: f.x[-1] == 17),
    "depth 1": (WINDOWS, lambda f: f.x[-1] == 1),
    "depth above 16": ((*CONVOLUTIONS, "FULLY_CONNECTED"), lambda f: f.x[-1] > 16),
    "batch 2": (WINDOWS, lambda f: f.x[0] == 2),
    "RELU6": ((*WINDOWS, "FULLY_CONNECTED"), lambda f: int(f.options["fused_activation_function"]) == 3),
    "RELU_N1_TO_1": ((*WINDOWS, "FULLY_CONNECTED"), lambda f: int(f.options["fused_activation_function"]) == 2),
    "units 17": (("FULLY_CONNECTED",), lambda f: f.w[0] == 17),
    "keep_num_dims": (("FULLY_CONNECTED",), lambda f: bool(f.options["keep_num_dims"])),
    "stride_h 2 and odd padding": (WINDOWS, lambda f: int(f.options["stride_h"]) == 2 and f.odd_padding),
    "batch 2 and VALID": (WINDOWS, lambda f: f.x[0] == 2 and int(f.options["padding"]) == 1),
    "stride 3 and depth 17": (WINDOWS, lambda f: int(f.options["stride_h"]) == 3 and f.x[-1] == 17),
}


@dataclass
class GeometryTarget:
    """A device that takes the element next to the right one where the condition holds."""

    profile: str
    op: str
    condition: str
    name: str = "planted geometry"

    def identity(self) -> dict[str, Any]:
        return {"name": self.name, "version": "planted 1"}

    def do(self, job: Any, cases: Any) -> str:
        chosen, (_, is_wrong) = by_name(self.profile), CONDITIONS[self.condition]
        for case in cases:
            place = job.folder / case.id
            model = load(place / "model.tflite")
            try:
                plan = make_plan(model, chosen)
                wrong = case.op == self.op and is_wrong(facts_of(view(model)))
                for number in range(len(case.samples)):
                    inputs = {}
                    for position, tensor in enumerate(plan.inputs):
                        operand = plan.operands[tensor]
                        data = np.fromfile(place / f"in{number}_{position}.bin", CARRIER[TensorType(operand.type)])
                        data = data.reshape(operand.shape)
                        inputs[tensor] = np.roll(data, 1, -2 if data.ndim == 4 else -1) if wrong else data
                    values = run(plan, inputs).values
                    for position, tensor in enumerate(plan.outputs):
                        values[tensor].tofile(place / f"out{number}_{position}.bin")
            except TflqError as error:
                (place / "refused.txt").write_text(str(error))
        return ""


def facts_of(graph: GraphView) -> Facts:
    """Return what a device sees of a model's operator."""
    (op,) = graph.ops
    shapes = [graph.tensors[t].shape for t in op.inputs]
    options = {} if op.options is None else op.options.fields
    return Facts(op.name, options, shapes[0], shapes[1] if len(shapes) > 1 else (), graph.tensors[op.outputs[0]].shape)


def planted(seed: int) -> GeometryTarget:
    """Return the device of a seed: a profile, an operator, and a condition of it."""
    rng = np.random.default_rng([seed, 41])
    condition = tuple(CONDITIONS)[int(rng.integers(len(CONDITIONS)))]
    operators = CONDITIONS[condition][0]
    op = operators[int(rng.integers(len(operators)))]
    return GeometryTarget(PROFILES[int(rng.integers(len(PROFILES)))], op, condition)
