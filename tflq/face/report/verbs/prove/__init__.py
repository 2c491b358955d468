"""The reports of `tflq prove`: verdicts on operators, and certificates."""
