"""Recurrences as vector code, compiled on first use."""
