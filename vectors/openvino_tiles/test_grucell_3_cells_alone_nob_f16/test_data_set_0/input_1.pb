
Binitial_hidden_stateJ2´67 ¤ž°C4