B
outputCellJ)Üx=ø‰Ÿ¾ë¬ˆ>ˆ4?{œ}?¤i#¾