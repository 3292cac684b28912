Bfinal_output_stateJ
€«ü“¬€Ì¹€