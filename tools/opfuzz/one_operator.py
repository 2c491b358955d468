"""Models with one operator, as the conformance suite builds them."""

from tflq.devices.suites.draft import T, build, data_of, in_second_union
from tflq.typing import Array

__all__ = ["Array", "T", "build", "data_of", "in_second_union"]
