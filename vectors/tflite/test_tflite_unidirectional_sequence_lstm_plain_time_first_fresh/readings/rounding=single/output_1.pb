Bfinal_output_stateJ
	âÕ!éß