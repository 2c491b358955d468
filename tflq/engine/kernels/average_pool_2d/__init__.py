"""AVERAGE_POOL_2D: the mean of the taps inside the image."""
