"""Decide whether profiles give the same bits for every input of an operator: by proof, or by a counterexample."""

from tflq.proof.certificate import ALL, Certificate, ProofCoverage, read_certificate
from tflq.proof.checking import CertificateCheck, check_certificate
from tflq.proof.operator import ON_ONE_LIBM, OperatorProof, ProfileVerdict, Witness, Word
from tflq.proof.proof import Proof, prove

__all__ = [
    "ALL",
    "ON_ONE_LIBM",
    "Certificate",
    "CertificateCheck",
    "OperatorProof",
    "ProfileVerdict",
    "Proof",
    "ProofCoverage",
    "Witness",
    "Word",
    "check_certificate",
    "prove",
    "read_certificate",
]
