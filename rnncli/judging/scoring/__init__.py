"""Scoring vectors by the mutants that they catch."""
