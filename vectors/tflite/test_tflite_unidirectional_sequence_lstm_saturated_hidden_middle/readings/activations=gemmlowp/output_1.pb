Bfinal_output_stateJ
´å€$KùR=.