"""Models that are wrong on purpose, by seed and number, and processes in which they are run and watched."""
