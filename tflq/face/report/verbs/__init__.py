"""Builders of reports, one module for each verb or two."""
