"""Builders of reports, one module or folder for each verb."""
