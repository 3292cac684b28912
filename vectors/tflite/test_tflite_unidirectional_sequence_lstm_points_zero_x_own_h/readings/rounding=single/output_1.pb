Bfinal_output_stateJ
8`_K^Rb7U