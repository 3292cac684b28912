"""Recurrences over NumPy arrays that are allocated once: every step writes where the last one did.

A step is two to a dozen calls of NumPy, each into memory that is there already and laid out so that
the call is one straight loop: `cells` are the steps, `activations` their functions, `layouts` how
memory lies. They work on a stage, see `plan`: `small` has that of small recurrences, `general` that
of all others. `walk` chooses and goes through time; `tuning` holds the thresholds.
"""
