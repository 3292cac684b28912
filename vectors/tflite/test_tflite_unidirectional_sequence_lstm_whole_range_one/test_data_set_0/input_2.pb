	B
cell_stateJğÆİXhêËŸ‘ØéÒ—S=