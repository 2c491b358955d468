"""From ranges to codes, and from the float model to the integer one."""
