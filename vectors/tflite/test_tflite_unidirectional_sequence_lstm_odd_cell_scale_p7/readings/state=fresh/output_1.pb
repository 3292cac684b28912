Bfinal_output_stateJ
øüïìÜüïâ