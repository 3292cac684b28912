Bfinal_output_stateJ
F¶спиѕц