"""Configs: one operator with its inputs, in YAML."""
