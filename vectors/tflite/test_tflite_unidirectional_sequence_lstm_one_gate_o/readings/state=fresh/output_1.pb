Bfinal_output_stateJ
ýÿôê