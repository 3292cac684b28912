Bfinal_output_stateJ
וש‎Ì
פד?ü