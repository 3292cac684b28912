Bfinal_cell_stateJWץ‹üן‎ז
רה»ûl‏­קד‏