"""Recurrences over preallocated NumPy arrays, which every step overwrites in place.

A step is two to a dozen NumPy calls, each on existing memory, laid out so that the call is one
contiguous loop. `time_steps` has the steps, `numpy_functions` their functions, `memory_layouts` the
layouts. They run in a stage (see `plan`): `small` has the stage of small recurrences, `general`
that of all others. `walk` chooses one and steps through time; `tuning` has the thresholds.
"""
