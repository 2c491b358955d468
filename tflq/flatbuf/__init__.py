"""The `.tflite` format: bytes to Model and back. The only package that knows FlatBuffers."""

from tflq.flatbuf.limits import Limits
from tflq.flatbuf.reader import read
from tflq.flatbuf.writer import write

__all__ = ["Limits", "read", "write"]
