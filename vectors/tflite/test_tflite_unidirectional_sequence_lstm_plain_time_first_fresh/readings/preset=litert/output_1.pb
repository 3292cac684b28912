Bfinal_output_stateJ
	ãÕ!éß