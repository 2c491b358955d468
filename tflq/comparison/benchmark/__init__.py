"""Profiles of tflq and real runtimes timed on one model, in turns within one run."""

from tflq.comparison.benchmark.benchmark import Benchmark
from tflq.comparison.benchmark.results import Benched, Case, OperatorTime, Side

__all__ = ["Benched", "Benchmark", "Case", "OperatorTime", "Side"]
