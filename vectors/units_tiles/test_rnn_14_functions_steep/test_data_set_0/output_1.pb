	BY_hJ6g1X…ã÷èM@≤|\ÑJÅb|ög<{
á5ä]àêÕWdjÆièuÈo"Ästm‘ÇÃb¯r