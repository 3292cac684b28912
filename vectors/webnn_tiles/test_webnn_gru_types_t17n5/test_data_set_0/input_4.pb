	
BrecurrentBiasJÖ7}°ä´â¶h6·¿´ä´»5