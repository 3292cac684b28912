Bfinal_output_stateJ
ú
öøù