B
outputCellJ­u>'¨¾(&?