"""Agreement of several runtimes on an integer model, and ways to increase it."""
