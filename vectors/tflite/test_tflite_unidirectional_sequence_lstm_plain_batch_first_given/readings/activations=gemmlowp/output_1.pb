Bfinal_output_stateJ
о#вяш