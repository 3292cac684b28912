BY_hJ
cni†mlz{€