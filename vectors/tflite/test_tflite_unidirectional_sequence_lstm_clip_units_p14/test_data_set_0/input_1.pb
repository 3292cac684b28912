B
cell_stateJή7µψύκÿ#b"?o 2Bδό\ρ