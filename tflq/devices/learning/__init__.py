"""Learn the arithmetic of an unknown device by questions, as a profile that executes it."""
