"""What can be said of a model, or of two, without a runtime: operators, constants, MACs, overflow, profiles."""
