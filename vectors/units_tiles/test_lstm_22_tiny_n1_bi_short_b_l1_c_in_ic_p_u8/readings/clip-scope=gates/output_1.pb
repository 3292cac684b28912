BY_hJ
coh†mky{€