"""The documents of all verbs as types, from which `tools/make_schemas.py` writes `schemas/`."""
