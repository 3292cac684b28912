B
cell_stateJ°!јДтыg…љVыKж√зЌ≠Ёс