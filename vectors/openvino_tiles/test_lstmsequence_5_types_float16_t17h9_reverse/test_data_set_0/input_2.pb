	
Binitial_cell_stateJ$N¸{:ô7ÑŸ&½e²—+à3Ä=0ºÀ¹6á¼²:€¼Õ9Ø@ì¸