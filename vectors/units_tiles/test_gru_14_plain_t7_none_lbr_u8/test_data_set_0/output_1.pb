BY_hJ
ã¶L$*MK2l,