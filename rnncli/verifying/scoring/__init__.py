"""Scoring suites by the mutants they catch."""
