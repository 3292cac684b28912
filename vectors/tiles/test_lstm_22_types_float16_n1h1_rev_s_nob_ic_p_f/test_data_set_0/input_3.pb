
B	initial_hJ¶