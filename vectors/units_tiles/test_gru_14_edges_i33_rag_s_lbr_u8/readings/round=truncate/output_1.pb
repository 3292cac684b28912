BY_hJ
aM_Ö˜=ma[