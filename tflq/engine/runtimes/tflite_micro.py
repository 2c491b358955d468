"""TensorFlow Lite Micro's interpreter with its reference kernels, from the tflite-micro wheel."""

from tflq.engine.runtimes.process import ProcessRuntime

RUNTIMES = (ProcessRuntime("tflm", "tflite-micro", "tflite_micro", "reference kernels", signatures=False),)
