"""Sessions: a model run step by step with its state, such as a decoder's caches, and two of them compared."""

from tflq.comparison.sessions.comparison import compare_sessions
from tflq.comparison.sessions.results import SessionComparison
from tflq.comparison.sessions.session import Session

__all__ = ["Session", "SessionComparison", "compare_sessions"]
