B	initial_hJ
ek&TÏH–∏w÷