from tflq.inspection.difference import Difference, difference
from tflq.verification.golden import Golden
from tflq.verification.goldens import load_golden
from tflq.verification.report import Report
from tflq.verification.results import OperatorResult, Status, TensorResult, Verdict
from tflq.verification.session import record, verify

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
