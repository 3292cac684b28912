Bfinal_output_stateJ
üץקץרעשÿה