Bfinal_output_stateJ
þ+í(!ñ