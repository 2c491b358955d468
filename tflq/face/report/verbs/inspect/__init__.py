"""The reports of `tflq inspect`, and the cards of models and interpreters."""
