"""From a suite to a pack: vectors made, written, resumed and checked."""

# What is kept of a model's recurrent nodes: executions, and bytes of one. Here, where the command
# line reads it without the modules that keep them.
MOST_CASES, MOST_BYTES = 32, 256 << 20
