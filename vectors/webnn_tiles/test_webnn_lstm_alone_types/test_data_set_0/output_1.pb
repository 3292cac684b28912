
B
outputCellJ+ªí"µ§0e´80B-¼/ê5S±