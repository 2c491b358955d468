"""Bodies that several operators share."""
