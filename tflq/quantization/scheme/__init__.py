"""Schemes: the mode of each operator, the role of each operand, and the tensors that share a scale."""
