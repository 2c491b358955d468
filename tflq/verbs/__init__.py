"""One public function for each verb: what `tflq VERB` answers, as a value.

The command line parses words, calls one of these functions, and prints what it returns; see tflq/face.
"""
