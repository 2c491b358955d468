"""Sessions: a model run step by step with its state, such as a decoder's caches, and two of them compared."""

from tflq.comparison.sessions.compare import Session, SessionComparison, compare_sessions

__all__ = ["Session", "SessionComparison", "compare_sessions"]
