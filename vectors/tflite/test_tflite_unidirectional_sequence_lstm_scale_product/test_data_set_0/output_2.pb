Bfinal_cell_stateJHÛöp	ìÿfÿm¡tA	>_ý%túöƒô/ø÷™"ÉY÷ºîˆîf†ùlò[ÿ»?C{q“
