"""Files besides models: outputs, which appear complete or not at all; archives of arrays; documents."""
