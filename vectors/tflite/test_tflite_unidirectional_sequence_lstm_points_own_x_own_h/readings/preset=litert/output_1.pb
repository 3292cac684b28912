Bfinal_output_stateJ
ZRkk\Wcpl