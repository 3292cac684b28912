Bfinal_output_stateJ
üÿתצךושÞ