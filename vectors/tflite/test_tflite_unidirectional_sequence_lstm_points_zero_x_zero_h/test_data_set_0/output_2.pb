Bfinal_cell_stateJ	
Hÿ˜ôÆûÎÿÆşk$