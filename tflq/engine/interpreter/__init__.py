"""Plans and their execution: no files, no global state."""

from tflq.engine.interpreter.plan import Plan, Step
from tflq.engine.interpreter.planning import make_plan
from tflq.engine.interpreter.run import run
from tflq.engine.interpreter.state import State
from tflq.engine.interpreter.trace import Trace

__all__ = ["Plan", "State", "Step", "Trace", "make_plan", "run"]
