"""What operators compute: one operator a file, tables concatenated explicitly."""
