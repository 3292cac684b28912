Bfinal_output_stateJ
âÙøúÿğë