"""Backends, which evaluate canonical recurrences, and their table."""

from rnncli.backends.backend_table import backend_named, known_backends

__all__ = ["backend_named", "known_backends"]
