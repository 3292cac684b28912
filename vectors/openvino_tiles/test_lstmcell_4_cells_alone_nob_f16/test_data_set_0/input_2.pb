
Binitial_cell_stateJÙ¹½þ,€©¢=@'