Bfinal_output_stateJ
û	õ
	óø