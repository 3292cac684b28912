Boutput_stateJ
ÿ¿Y0«ØåG