Bfinal_output_stateJ
п(лгщ