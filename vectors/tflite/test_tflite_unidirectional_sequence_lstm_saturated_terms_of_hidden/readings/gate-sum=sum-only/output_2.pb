Bfinal_cell_stateJקעÿÿB
iO))ם‎ף™שױב	6n