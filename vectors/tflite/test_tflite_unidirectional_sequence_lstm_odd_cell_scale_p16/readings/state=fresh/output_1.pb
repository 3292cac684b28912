Bfinal_output_stateJ
âÙùûşñí