"""Decide whether profiles give the same bits for every input of an operator: by proof, or by a counterexample."""

from tflq.proof.certificate import Certificate, read_certificate
from tflq.proof.checking import Check, check_certificate
from tflq.proof.coverage import Coverage
from tflq.proof.proof import Proof, prove
from tflq.proof.selection import ALL
from tflq.proof.verdicts import ON_ONE_LIBM, OperatorProof, Verdict, Witness, Word

__all__ = [
    "ALL",
    "ON_ONE_LIBM",
    "Certificate",
    "Check",
    "Coverage",
    "OperatorProof",
    "Proof",
    "Verdict",
    "Witness",
    "Word",
    "check_certificate",
    "prove",
    "read_certificate",
]
