Bfinal_output_stateJ
	юЁюдве