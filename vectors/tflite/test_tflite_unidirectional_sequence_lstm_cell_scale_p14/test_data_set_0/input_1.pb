B
cell_stateJ=˜3†³×¿¦-`|&sÊ®Ô™J