"""The rows of the table of profiles."""
