"""A software device with planted mistakes: an independent implementation of quantized operators."""
