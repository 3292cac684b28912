B
outputCellJ(ÚŽJ¿1“?!Ã¾ó&?ž ?\›°¾"Ùu¿c²?RÌg¿Nnµ½