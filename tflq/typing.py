"""Types that all rooms share: arrays, and the entries of documents with more rules than a type has.

In `Annotated`, a text is the description, and a pair is a keyword of JSON Schema and its value.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T")

#: An array of any type.
Array: TypeAlias = NDArray[Any]
#: Arrays of float64, float32 and int64.
Reals: TypeAlias = NDArray[np.float64]
Floats: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
#: A number of things.
Count: TypeAlias = Annotated[int, ("minimum", 0)]
#: A digest, in hexadecimal.
Sha256: TypeAlias = Annotated[str, ("pattern", "^[0-9a-f]{64}$")]
#: Two values in a list.
Pair: TypeAlias = Annotated[list[_T], ("minItems", 2), ("maxItems", 2)]
#: A float that JSON has no number for.
NotFinite: TypeAlias = Literal["Infinity", "-Infinity", "NaN"]
