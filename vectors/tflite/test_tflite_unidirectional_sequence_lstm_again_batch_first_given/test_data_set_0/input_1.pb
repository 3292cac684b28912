Boutput_stateJ
Ÿ VÙ¿ú·ÑÜ