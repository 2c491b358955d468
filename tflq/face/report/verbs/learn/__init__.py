"""A learned device as a report and a document."""
