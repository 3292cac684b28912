Bfinal_output_stateJ
Ю(
менк