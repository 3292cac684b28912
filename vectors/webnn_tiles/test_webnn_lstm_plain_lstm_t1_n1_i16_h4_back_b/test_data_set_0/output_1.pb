B
outputCellJ\2×¾ò1I?8½Æ¾ıOü=