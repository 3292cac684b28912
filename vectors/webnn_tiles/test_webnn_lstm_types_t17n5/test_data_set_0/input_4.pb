
BrecurrentBiasJ +²®"µ\µß¶µ•¬Ñ6 ·ë°Ç³