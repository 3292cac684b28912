Bfinal_output_stateJ
ץûפעןקט