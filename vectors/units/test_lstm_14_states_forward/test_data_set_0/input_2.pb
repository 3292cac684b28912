B	initial_hJ
qKwá%TŸ