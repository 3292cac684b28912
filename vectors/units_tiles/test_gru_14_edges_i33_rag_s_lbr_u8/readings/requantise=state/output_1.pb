BY_hJ
bM`×™=ma\