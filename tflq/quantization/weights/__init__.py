"""Models of several signatures: weights quantized in place, once for all signatures; activations stay float."""
