"""Runners, builders and fixtures that the tests share."""
