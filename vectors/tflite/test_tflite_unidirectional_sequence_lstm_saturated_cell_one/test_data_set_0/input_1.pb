B
cell_stateJìÄ|õµy©ÔÔiœÃ