"""Faults of devices, planted into right runs of models by plain NumPy: tools/plant_faults.py."""
