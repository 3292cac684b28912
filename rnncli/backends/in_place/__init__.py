"""Recurrences over NumPy arrays that are allocated once: every step writes where the last one did.

A step is a dozen calls of NumPy, each into memory that is there already and laid out so that the
call is one straight loop: `layouts` says how, `cells` are the steps, `activations` their functions,
`walk` goes through time.
"""
