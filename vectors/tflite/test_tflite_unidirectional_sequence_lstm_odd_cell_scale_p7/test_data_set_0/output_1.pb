Bfinal_output_stateJ
l6Н0Eвя