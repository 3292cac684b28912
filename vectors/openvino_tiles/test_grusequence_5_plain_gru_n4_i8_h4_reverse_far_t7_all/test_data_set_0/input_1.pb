Binitial_hidden_stateJ@åv´¼K^Ï¾1&Ë¾ë\˜>”UÄ¾l2I<Ž‚>N¸½g
e½Ï‹©=cQ!¾<–ª>®ñ>DÃ>æú>
Ùð¾