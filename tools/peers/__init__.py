"""Other projects' test suites, run against tflq: their interpreter is replaced, nothing of theirs is kept here."""
