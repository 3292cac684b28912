Bfinal_output_stateJ
üúõõ	ìåúá