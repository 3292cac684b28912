BY_hJ
qÿqqÛqª»qq