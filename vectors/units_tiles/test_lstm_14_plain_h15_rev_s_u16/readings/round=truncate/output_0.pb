BYJ´~…Uu	…Ea}Kv
j_³ V2v@VçlEÝuŸ‹g’—"c?“hvt…Äq°sÑovg„ŠíŽøˆúˆZqØ‚N|£†…OxmxXqc–‹ivt3\çxþe6w°{„¦òˆ\eˆŠÐ|€‘côrÞ^!Q4•M…†)…'kž~ep:ƒXŠÈQrtg£rdU{l_÷jábpÓ€ÉvŽsÖTÜu÷¬·`á‘ãi1„™ëƒÏj«zCm