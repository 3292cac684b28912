B
outputCellJ;à‚¿ýc›¼Põ&?÷b„>Njf?Já¿=