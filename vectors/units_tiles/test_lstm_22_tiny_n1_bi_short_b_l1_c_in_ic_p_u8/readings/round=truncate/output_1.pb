BY_hJ
cnh…mlyz