Bfinal_output_stateJ
στψίρω