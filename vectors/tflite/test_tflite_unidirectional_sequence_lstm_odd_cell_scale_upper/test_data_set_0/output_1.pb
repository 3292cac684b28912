Bfinal_output_stateJ
Äûô°ÿaå