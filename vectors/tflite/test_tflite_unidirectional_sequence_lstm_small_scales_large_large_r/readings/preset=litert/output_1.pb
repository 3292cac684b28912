Bfinal_output_stateJ
şûû¦øNâjûû