Bfinal_output_stateJ
Ўв‘решьц