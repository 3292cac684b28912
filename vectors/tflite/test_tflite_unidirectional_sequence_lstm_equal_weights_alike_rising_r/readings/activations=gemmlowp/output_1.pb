Bfinal_output_stateJ
׳ס	ü‏ךû
קת