Bfinal_output_stateJ
ùñ#÷äøØÛ