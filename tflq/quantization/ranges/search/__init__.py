"""Search for the range that a tensor's codes cover: points of data, losses of a range, and solvers."""
