Bfinal_output_stateJ
âÙøûşñì