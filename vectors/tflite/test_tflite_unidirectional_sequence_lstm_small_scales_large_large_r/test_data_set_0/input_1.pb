Boutput_stateJ
·Ş¶³¬Y#àV