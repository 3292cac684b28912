Bfinal_cell_stateJHÛöo	ìÿfÿm¡tB	>_ý%túõƒô/ø÷™"ÉX÷ºîˆîf†ùlò[ÿ»?C|q“
