"""A device held against a profile: where a dump differs, why, and what follows."""
