B
cell_stateJHmQ[Е:ў_7ec?A[kєQ/AР╟"┐рNG7Ы"ЪП	ш╡%╪DuЫSцE@╗a╝еbи(9L
ю┤╚╜dюд