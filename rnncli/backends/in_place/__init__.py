"""Recurrences over preallocated NumPy arrays, which every step overwrites in place.

A step is two to a dozen NumPy calls, each on existing memory, laid out so that the call is one
contiguous loop. `time_steps` has the steps and their functions, `stages` the memory that they run
in, `prepared_calls` what is prepared for constant weights. `walk` steps through time.

Below are the thresholds between equivalent algorithms, whose relative speed depends on the machine.
They were set on 2026-11-21, by measurements on two cores of an AMD EPYC (AVX-512, 1 MiB of L2 each)
with NumPy 2.4 and its OpenBLAS. To retune one, compare two values by

    RNNCLI_THREADS=1 rnncli bench WORKLOAD --op CELL --backend numpy --by fastest --rounds 9

with the workloads named in its heading. They affect results only through the order of sums.
"""

# --- small recurrences, whose weights are stacked (`stages`): tiny, small ------------------------

# The most multiplications for which stacking pays: in a step's product, and in all steps of a call
# whose weights are already stacked.
STACKED_PRODUCT, STACKED_CALL = 1 << 17, 17 << 18
# The most numbers in all stacks.
STACKED_NUMBERS = 1 << 15
# The number of weights that are copied in the time that stacking saves in a step.
COPIED_WEIGHTS = 1 << 11

# --- both directions in one step (`prepared_calls`): tiny and small, bidirectional ---------------

# The most multiplications by zeros, per step and gate, and the fewest steps, for which it pays.
FUSED_ZEROS, FUSED_STEPS = 1 << 12, 8

# --- how inputs are projected (`stages`): medium, large, long, xl --------------------------------

# Blocks of projected inputs: the size, and the least sequences times steps of many sequences.
BLOCK_NUMBERS, BLOCK_COLUMNS = 1 << 18, 512
# The sequences from which on projected inputs lie in the order of the gates.
MANY_SEQUENCES = 25
# States are smaller than inputs: this many add as much error as one input.
STATES_AS_INPUTS = 4

# --- threads that share sequences (`walk`): large, long and xl with --threads 2 ------------------

# The least multiplications in matrix products for which it pays: about a millisecond.
SHARED_WORK = 1 << 27
# The widest batch, in bytes, that OpenBLAS multiplies at full speed: four vectors of AVX-512. For
# 64 float64 sequences of 512 units it takes a third longer than for twice 32.
SHARED_BYTES = 256

# --- memory and calls that are kept (`stages`, `prepared_calls`): bounds, not speed --------------

# Limits of the cache: bytes of one stage, bytes in total, number of stages.
MOST_OF_ONE, MOST_OF_ALL, MOST_STAGES = 1 << 23, 1 << 24, 256
# The maximum number of prepared calls for the same weights.
MOST_FORMS = 4
