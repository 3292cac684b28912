Bfinal_output_stateJ
ÝàÞö)%