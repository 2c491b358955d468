"""Models with one operator, as the conformance suite builds them."""

from tflq.devices.conformance.one_operator import Array, T, build, data_of, in_second_union

__all__ = ["Array", "T", "build", "data_of", "in_second_union"]
