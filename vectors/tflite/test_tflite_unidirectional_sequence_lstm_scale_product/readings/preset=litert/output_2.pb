Bfinal_cell_stateJHÜöp	ìÿhÿk¡tA	@_ý%fúû†ôø÷¼)®_÷µî¦îb\ù}òPÿºXC˜v‘
