"""Which operators become integer, what each of their operands is, and which tensors share a scale."""
