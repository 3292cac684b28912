Bfinal_output_stateJ
ÈÛ6