Bfinal_output_stateJ
üû	