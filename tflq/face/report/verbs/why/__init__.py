"""Reports of `tflq why`: an answer as text, page, document and Markdown."""
