BY_hJ
bM`Ö™=ma\