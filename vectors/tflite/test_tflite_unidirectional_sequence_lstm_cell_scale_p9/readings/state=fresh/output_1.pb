Bfinal_output_stateJ
Ýðý)üÿ