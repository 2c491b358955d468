"""From a float model and calibration data to an integer model, verified on the integer executor."""
