Boutput_stateJ
ĞÇÒZ%-Òè