BY_hJ
mzv”†ˆif