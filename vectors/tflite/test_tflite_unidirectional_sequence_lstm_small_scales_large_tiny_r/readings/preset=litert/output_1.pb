Bfinal_output_stateJ
6İûÉÉòûÙ