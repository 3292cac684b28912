Bfinal_output_stateJ
³å€$KùR=.