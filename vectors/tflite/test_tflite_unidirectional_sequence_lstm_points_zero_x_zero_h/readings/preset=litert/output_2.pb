Bfinal_cell_stateJ	
Hÿ˜ôÆû¿ÿÉşa