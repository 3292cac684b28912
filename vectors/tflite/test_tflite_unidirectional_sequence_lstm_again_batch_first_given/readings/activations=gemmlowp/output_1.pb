Bfinal_output_stateJ
Ът$няк