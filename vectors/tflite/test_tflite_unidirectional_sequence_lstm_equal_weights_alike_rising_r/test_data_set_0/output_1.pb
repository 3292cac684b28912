Bfinal_output_stateJ
ײס	ü‏ךû
קת