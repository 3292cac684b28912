Bfinal_output_stateJ
l6½0EÓï