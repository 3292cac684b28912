Bfinal_output_stateJ
åßü-í