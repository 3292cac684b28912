B
cell_stateJ๎๕6ม'Zหอ?1ภฺFMLจ"ค