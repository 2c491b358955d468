"""The reports of `tflq profiles`: the list, two profiles, profiles on a model, releases on a model."""
