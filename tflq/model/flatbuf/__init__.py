"""Codec of the `.tflite` format, tflite-micro dumps and LiteRT-LM headers. Only this package knows FlatBuffers."""

from tflq.model.flatbuf.layout import ReadLimits
from tflq.model.flatbuf.reader import read, read_record
from tflq.model.flatbuf.writer import write

__all__ = ["ReadLimits", "read", "read_record", "write"]
