BY_hJ
ÿÿqÿqÿÿqÿq