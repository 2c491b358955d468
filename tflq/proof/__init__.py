"""Whether two profiles give the same bits for every input of an operator: proved, or disproved by an input."""

from tflq.proof.proof import Proof, prove
from tflq.proof.verdicts import ON_ONE_LIBM, OperatorProof, Verdict, Witness, Word

__all__ = ["ON_ONE_LIBM", "OperatorProof", "Proof", "Verdict", "Witness", "Word", "prove"]
