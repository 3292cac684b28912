Bfinal_output_stateJ
ץûפעמקט