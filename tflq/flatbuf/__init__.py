"""Codec of the `.tflite` format, and of tflite-micro's dumps. Only this package knows FlatBuffers."""

from tflq.flatbuf.limits import Limits
from tflq.flatbuf.reader import read, read_layer_by_layer
from tflq.flatbuf.writer import write

__all__ = ["Limits", "read", "read_layer_by_layer", "write"]
