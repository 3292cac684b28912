Boutput_stateJ
ù²+ùÍ¡M(