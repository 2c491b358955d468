"""`tflq view`: the page about what is given, and node data for Model Explorer."""
