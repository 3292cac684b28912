"""Suites: many cases from a few lines of YAML."""
