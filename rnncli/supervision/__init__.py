"""Supervised programs and processes, which end with their use, and their messages."""
