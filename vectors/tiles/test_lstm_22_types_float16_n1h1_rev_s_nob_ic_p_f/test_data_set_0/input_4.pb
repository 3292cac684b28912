
B	initial_cJ8<