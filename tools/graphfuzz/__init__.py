"""Random graphs of several operators, whose constants lie as converters and exporters leave them."""
