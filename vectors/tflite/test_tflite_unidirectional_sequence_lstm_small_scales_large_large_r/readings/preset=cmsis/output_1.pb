Bfinal_output_stateJ
şûû¦øMãjûû