"""`tflq view`: a page in the browser that follows its files, and node data for Model Explorer."""
