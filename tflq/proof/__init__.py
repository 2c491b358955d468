"""Decide whether two profiles give the same bits for every input of an operator: by proof, or by a counterexample."""

from tflq.proof.proof import Proof, prove
from tflq.proof.verdicts import ON_ONE_LIBM, OperatorProof, Verdict, Witness, Word

__all__ = ["ON_ONE_LIBM", "OperatorProof", "Proof", "Verdict", "Witness", "Word", "prove"]
