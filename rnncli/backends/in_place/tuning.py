"""Thresholds between ways of computing the same: which pays depends on the machine.

Set on 2026-11-21, by measurements on two cores of an AMD EPYC (AVX-512, 1 MiB of L2 each) with
NumPy 2.4 and its OpenBLAS. To set one anew, compare two of its values in turns by

    RNNCLI_THREADS=1 rnncli bench WORKLOAD --op CELL --backend numpy --by fastest --rounds 9

with the workloads that its heading names. None changes a result by more than the order of a sum.
"""

# --- plans of small recurrences, whose weights are stacked (`small`): tiny, small ----------------

# Multiplications of a step's product up to which stacking pays; and of all steps of a call, where
# the weights are stacked already.
STACKED_PRODUCT, STACKED_CALL = 1 << 17, 17 << 18
# Numbers of all stacks.
STACKED_NUMBERS = 1 << 15
# Weights that are copied in the time that stacking saves in a step.
COPIED_WEIGHTS = 1 << 11

# --- both directions in one step (`small`): tiny and small, bidirectional ------------------------

# Multiplications by zeros, in a step of a gate, up to which it pays; and steps from which on.
ABREAST_ZEROS, ABREAST_STEPS = 1 << 12, 8

# --- how weights, inputs and states lie in memory (`layouts`): medium, large, long, xl -----------

# Multiplications of a product that OpenBLAS does without copying its operands.
SMALL_PRODUCT = 1_000_000
# Projected inputs: numbers of a block, and sequences times steps of a block at least, where one
# product makes it; numbers of one, and steps at least, where each step has its own.
BLOCK_NUMBERS, BLOCK_COLUMNS = 1 << 18, 512
CACHED_NUMBERS, LEAST_STEPS = 1 << 17, 16
# Bytes in a row of a slice: four vectors of AVX-512.
SLICE_BYTES = 256
# Rows of weights in a slice, the best first.
SLICE_ROWS = (16, 8, 4)
# States are smaller than inputs: the errors of so many sum up as those of one do.
STATES_AS_INPUTS = 4
# From this many sequences on columns are faster than rows, and up to this many numbers of a gate.
MANY_SEQUENCES, FEW_NUMBERS = 25, 32

# --- threads that share sequences (`walk`): large, long and xl with --threads 2 ------------------

# Multiplications of matrix products from which on it pays: about a millisecond of them.
SHARED_WORK = 1 << 27
# Bytes of the sequences that OpenBLAS multiplies at full speed: four vectors of AVX-512. Of 64
# sequences in float64, with 512 units, it takes a third longer than of twice 32.
SHARED_BYTES = 256

# --- memory and calls that are kept (`scratch`, `small`): bounds, not speed ----------------------

# Bytes of an array that are not worth keeping: less than the allocator hands back to the system.
LEAST_ROOM = 1 << 17
# Bytes kept at most, of one thing and of all, and how many things.
MOST_OF_ONE, MOST_OF_ALL, MOST_THINGS = 1 << 23, 1 << 24, 256
# How many forms of the calls of the same weights are prepared for at a time.
MOST_FORMS = 4
