Bfinal_output_stateJ
זש‎Ë
פד?ü