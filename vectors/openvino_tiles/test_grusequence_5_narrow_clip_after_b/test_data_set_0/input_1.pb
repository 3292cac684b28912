	
Binitial_hidden_stateJ$¨²’´"0Ù4Âµš/F´Œ410ˆ1ã70L0¡4Ñ·/«<°Ú¶