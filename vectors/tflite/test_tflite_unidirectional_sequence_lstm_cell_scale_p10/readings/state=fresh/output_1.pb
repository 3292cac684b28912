Bfinal_output_stateJ

לזבה