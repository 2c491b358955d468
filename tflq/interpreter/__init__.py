"""Plans and their execution: no files, no global state."""

from tflq.interpreter.plan import Plan, Step
from tflq.interpreter.planning import make_plan
from tflq.interpreter.run import run
from tflq.interpreter.state import State
from tflq.interpreter.trace import Trace

__all__ = ["Plan", "State", "Step", "Trace", "make_plan", "run"]
