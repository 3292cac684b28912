"""The narrow waist: the canonical recurrence, its cells, activations and readings."""
