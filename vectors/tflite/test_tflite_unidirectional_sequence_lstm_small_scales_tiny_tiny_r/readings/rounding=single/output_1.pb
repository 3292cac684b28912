Bfinal_output_stateJ
úñüúûööşúı