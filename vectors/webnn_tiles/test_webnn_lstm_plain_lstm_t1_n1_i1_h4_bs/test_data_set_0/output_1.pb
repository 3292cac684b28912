B
outputCellJ2ç[>Óœ¿úll=&Ë'¾