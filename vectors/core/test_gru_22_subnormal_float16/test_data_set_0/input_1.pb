
BWJZ)\j[«[ã×OYÌ5X=ÖÏ¸ÉºV[QæÄÖÔoUY1OÝY#\âJ¬[9UCÖ-ÓZB[QÔ]€]}]{ÑTF\a]Ï\ä\ÐSyTª]üE}\ÏZøÓWTèÅ