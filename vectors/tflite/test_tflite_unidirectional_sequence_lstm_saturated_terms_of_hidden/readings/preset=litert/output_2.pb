Bfinal_cell_stateJωςÿÿB
hN'+νώσ—ωΥα	6m