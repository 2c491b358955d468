"""TensorFlow Lite Micro's interpreter with its reference kernels, as the tflite-micro wheel has it."""

from tflq.runtimes.process import ProcessRuntime

RUNTIMES = (ProcessRuntime("tflm", "tflite-micro", "tflite_micro", "reference kernels"),)
