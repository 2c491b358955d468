"""Plans and their execution: no files, no global state."""

from tflq.engine.interpreter.evaluation import State
from tflq.engine.interpreter.execution import run
from tflq.engine.interpreter.plan import Plan, Step, Trace
from tflq.engine.interpreter.planning import make_plan

__all__ = ["Plan", "State", "Step", "Trace", "make_plan", "run"]
