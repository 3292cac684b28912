B
outputCellJ >p?t<?Kˆ\¿ œ—¾î‰¿M^G>)ý.<–7ò¾