"""Scores of vectors: the mutants that they catch, and the sizes and calls that they cover."""
