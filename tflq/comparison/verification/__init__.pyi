from tflq.comparison.inspection.difference import Difference, difference
from tflq.comparison.verification.golden import Golden
from tflq.comparison.verification.goldens import load_golden
from tflq.comparison.verification.report import Report
from tflq.comparison.verification.results import OperatorResult, Status, TensorResult, Verdict
from tflq.comparison.verification.verifying import record, verify

__all__ = [
    "Difference",
    "Golden",
    "OperatorResult",
    "Report",
    "Status",
    "TensorResult",
    "Verdict",
    "difference",
    "load_golden",
    "record",
    "verify",
]
