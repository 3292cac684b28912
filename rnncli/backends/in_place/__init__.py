"""Recurrences over preallocated NumPy arrays, which every step overwrites in place.

A step is two to a dozen NumPy calls, each on existing memory, laid out so that the call is one
contiguous loop. `time_steps` has the steps and their functions, `stages` the memory that they run
in, `prepared_calls` what is prepared for constant weights. `walk` steps through time; `tuning` has
the thresholds.
"""
