"""A config: one operator with its inputs, read from YAML."""
