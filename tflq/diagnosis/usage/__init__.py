"""Mistakes of the user: inputs prepared otherwise than the model expects, and dumps written otherwise than read."""
