"""Inspection of one or two models without a runtime: operators, constants, MACs, overflow, profiles."""
