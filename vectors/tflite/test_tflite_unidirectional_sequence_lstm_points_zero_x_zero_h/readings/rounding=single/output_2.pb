Bfinal_cell_stateJ	
Jÿ™ôÆûÎÿÆşk$