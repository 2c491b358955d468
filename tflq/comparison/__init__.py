"""Two results side by side: tables of a model, recordings, verdicts, steps and times."""
