"""Recurrences as vector code, compiled when they are first run."""
