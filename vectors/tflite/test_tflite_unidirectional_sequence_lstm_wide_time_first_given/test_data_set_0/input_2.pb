B
cell_stateJXжаz"ЬпY‘ьЯфЋм?о