B
outputCellJ(Îü&¾¼sÇ¾„N‡¾mí©½èÔ¿[b>j2>öž¼h>M>