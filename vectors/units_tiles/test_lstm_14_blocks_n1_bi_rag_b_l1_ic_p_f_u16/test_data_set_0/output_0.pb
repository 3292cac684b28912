BYJÀMx³T"h¦`ƒÖ7úÆkTM	€³p
£;†Ñm…Ûp}'KŽ6st­oê¥…K®Bg/–1™us£—$fñuÖuêQtkvnX@'ŠÆmÃkIypñ{bs†dfð™Y[DwëvÄTu ›¬{L¡{k;™‰"j|_o_‰Ç}Xa[uÔornXª€‹wI‰ÙŠmth€árG]::—‘‚:y(\Q¢ÂcÄ†ô{d¦y)rŠíL›¤¬C
£