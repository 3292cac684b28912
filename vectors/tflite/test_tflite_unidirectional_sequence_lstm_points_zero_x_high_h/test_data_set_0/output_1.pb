Bfinal_output_stateJ
y