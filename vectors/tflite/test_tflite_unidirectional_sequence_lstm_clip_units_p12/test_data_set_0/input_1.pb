B
cell_stateJËŒ6Àã­€ér)Êã&ğnß(