"""How far several runtimes agree on an integer model, and what makes them agree more."""
