"""Plans and their execution: no files, no global state."""

from tflq.interpreter.plan import Plan, Step, make_plan
from tflq.interpreter.run import State, run
from tflq.interpreter.trace import Trace

__all__ = ["Plan", "State", "Step", "Trace", "make_plan", "run"]
