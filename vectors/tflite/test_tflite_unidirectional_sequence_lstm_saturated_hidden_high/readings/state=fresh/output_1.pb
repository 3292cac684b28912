Bfinal_output_stateJ
í0dEpYN