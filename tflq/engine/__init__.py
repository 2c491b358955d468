"""Arithmetic and execution: what a runtime computes, operator by operator, and how it runs here."""
