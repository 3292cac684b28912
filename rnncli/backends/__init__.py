"""Backends: what evaluates a canonical recurrence, and the table of them."""

from rnncli.backends.table import BACKENDS, backend_named

__all__ = ["BACKENDS", "backend_named"]
