"""Codec of the `.tflite` format, tflite-micro dumps and LiteRT-LM headers. Only this package knows FlatBuffers."""

from tflq.model.flatbuf.limits import Limits
from tflq.model.flatbuf.reader import read, read_record
from tflq.model.flatbuf.writer import write

__all__ = ["Limits", "read", "read_record", "write"]
