"""`tflq golden export`: goldens as C, and the report of the files written."""
