	Bfinal_cell_stateJ–ÿÙ׃§‎
	ענק£Û