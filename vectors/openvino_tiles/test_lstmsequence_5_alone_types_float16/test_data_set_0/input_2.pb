
Binitial_cell_stateJจ7ธ๏1C:ÿ6*:มข7>ภ|>