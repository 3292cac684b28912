B
cell_stateJşşC Õª
‘ÆöÓèÎüu÷õê