"""Judging an implementation against a pack."""
