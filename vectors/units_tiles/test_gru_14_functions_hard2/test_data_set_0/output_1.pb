	BY_hJ6 qlyñw–nêr]xºrÉp…qºqœuxÀmËq
w`u'rÅrqx®xëséxštÇsQt