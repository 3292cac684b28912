Bfinal_cell_stateJCö™
S–ùûŒ£ûì÷