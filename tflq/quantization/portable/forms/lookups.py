"""Forms of a table lookup: int8 codes to entries of a constant table, exact in every runtime that takes it.

| form       | operators                       | taken by                                                         |
|------------|---------------------------------|------------------------------------------------------------------|
| cast       | CAST, ADD, GATHER               | TensorFlow Lite 2.8 and later, LiteRT, TFLM                      |
| dequantize | RESHAPE, DEQUANTIZE, CAST, GATHER | older ones, too: CAST takes int8 from version 3 on             |

`cast` adds 128 to codes. `dequantize` calls them numbers with scale 1 and zero point -128; their float32 values are the
places in the table. Run under LiteRT 2.3 and 2.4, tflite-runtime 2.7 to 2.14, TensorFlow 2.3 and tflite-micro.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Buffer, Model, Quantization, Subgraph, TensorSpec, TensorType
from tflq.quantization.params import Params
from tflq.quantization.portable.forms.editing import Editing

Codes = NDArray[np.int8]
#: A table begins with the entry of the least code.
LEAST = -128


@dataclass(frozen=True, slots=True)
class Lookup:
    """A form: the operators that it writes, and the function that writes them."""

    name: str
    operators: tuple[str, ...]
    write: Callable[[Editing, int, int], int]  # from a tensor of codes to places in the table, for an origin


def _cast(editing: Editing, source: int, origin: int) -> int:
    spec = editing.spec(source)
    wide, places = (editing.tensor(spec, end, type=TensorType.INT32, quantization=None) for end in ("/wide", "/place"))
    types = {"in_data_type": int(TensorType.INT8), "out_data_type": int(TensorType.INT32)}
    editing.operator("CAST", [source], [wide], origin, "CastOptions", 3, **types)
    offset = editing.constant("table_offset", np.array([-LEAST], np.int32))
    editing.operator("ADD", [wide, offset], [places], origin, "AddOptions", pot_scale_int16=False)
    return places


def _dequantize(editing: Editing, source: int, origin: int) -> int:
    spec = editing.spec(source)
    numbered = editing.tensor(spec, "/numbered", quantization=Params.of(TensorType.INT8, 1.0, LEAST).quantization)
    wide = editing.tensor(spec, "/wide", type=TensorType.FLOAT32, quantization=None)
    places = editing.tensor(spec, "/place", type=TensorType.INT32, quantization=None)
    shape = editing.constant("table_shape", np.array(spec.shape, np.int32))
    editing.operator(
        "RESHAPE", [source, shape], [numbered], origin, "ReshapeOptions", new_shape=np.array(spec.shape, np.int32)
    )
    editing.operator("DEQUANTIZE", [numbered], [wide], origin, "DequantizeOptions", 2)
    types = {"in_data_type": int(TensorType.FLOAT32), "out_data_type": int(TensorType.INT32)}
    editing.operator("CAST", [wide], [places], origin, "CastOptions", 1, **types)
    return places


#: All forms, the one with the fewest operators first.
LOOKUPS = (
    Lookup("cast", ("CAST", "ADD", "GATHER"), _cast),
    Lookup("dequantize", ("RESHAPE", "DEQUANTIZE", "CAST", "GATHER"), _dequantize),
)


def lookup_for(runtimes: Sequence[Profile]) -> Lookup | None:
    """Return the first form that all runtimes take; None if there is none."""
    return next((form for form in LOOKUPS if all(takes(form, runtime) for runtime in runtimes)), None)


@cache
def takes(form: Lookup, runtime: Profile) -> bool:
    """Return whether a runtime has kernels for the operators of a form."""
    try:
        make_plan(_trial(form), runtime)
    except TflqError:
        return False
    return True


@cache
def _trial(form: Lookup) -> Model:
    """Return a model that is one lookup."""
    q = Params.of(TensorType.INT8, 1.0).quantization
    x, y = (TensorSpec(name, TensorType.INT8, (1, 2, 2, 3), quantization=q) for name in "xy")
    editing = Editing(Model(3, (), (Subgraph((x, y), (0,), (1,), ()),), (Buffer(),)))
    write(editing, form, editing.new(0), editing.new(1), np.arange(LEAST, -LEAST, dtype=np.int8), q, -1)
    return editing.result()


def write(
    editing: Editing, form: Lookup, source: int, result: int, table: Codes, q: Quantization | None, origin: int
) -> None:
    """Write a lookup from one tensor of codes to another; GATHER has the origin, the operators before it have none."""
    places = form.write(editing, source, -1)
    entries = editing.constant("table", table, q)
    editing.operator("GATHER", [entries, places], [result], origin, "GatherOptions", 2)
