Bfinal_cell_stateJσσδ6όαφ’nε	
υ