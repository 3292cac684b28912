"""Comparing outputs with what they should be."""
