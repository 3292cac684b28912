	Binitial_hidden_stateJHVоЊѕ–й“ѕ‘,ХѕЪ¦•ѕE‹Ў>w\КЅяPFѕQАј(–>aгэ>чa®ѕD	.ѕVщM>ђД>Xr)>K7>
Іѕлъ$ѕ