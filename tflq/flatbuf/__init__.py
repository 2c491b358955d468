"""Codec of the `.tflite` format, tflite-micro dumps and LiteRT-LM headers. Only this package knows FlatBuffers."""

from tflq.flatbuf.limits import Limits
from tflq.flatbuf.reader import read, read_record
from tflq.flatbuf.writer import write

__all__ = ["Limits", "read", "read_record", "write"]
