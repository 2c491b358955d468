"""A device in software whose mistakes are planted on purpose: direct code of its own for quantized operators."""
