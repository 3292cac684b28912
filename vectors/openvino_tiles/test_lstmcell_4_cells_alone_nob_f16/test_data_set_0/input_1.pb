
Binitial_hidden_stateJ9(Ç6w7·4¤0