
BrecurrentBiasJ0R2U47!Ð73K,·(*È±Ó3S¶A6r·r¶j±÷ª6=®e7Ë²×­±45ì-