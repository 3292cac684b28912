
B
outputCellJ×0¼¯8æ­j³
¸2a9g¹1±