"""Verification: compare a profile's results with a real runtime's, or with a golden file's."""
