B
outputCellJ€ÌΩ?