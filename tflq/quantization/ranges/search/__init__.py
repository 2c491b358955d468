"""Which range of values should a tensor's codes stand for? Points of data, what is lost by a range, and solvers."""
