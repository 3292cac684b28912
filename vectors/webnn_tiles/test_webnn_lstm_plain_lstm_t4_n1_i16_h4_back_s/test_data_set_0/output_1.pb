B
outputCellJc¯?“{9>åMF¾B9>