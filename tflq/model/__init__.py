"""A model file as a value: its vocabulary, the wire format, surgery, and files beside models."""
