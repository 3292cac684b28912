"""Backends: what evaluates a canonical recurrence, and the table of them."""

from rnncli.backends.table import backend_named, known_backends

__all__ = ["backend_named", "known_backends"]
