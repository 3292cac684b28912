BYJ´~…Uu
…Ea}Kvj`³ V2v@VèlEÝu ‹g’—#c@“hvt…Äq°sÑowg„ŠíŽùˆûˆ[qØ‚O|£†…OxmxXqd–Œiwt3\èxþe7w°{„¦óˆ\eˆŠÑ|€‘cõrÞ^!Q5•N…†)…(kŸ~ep;ƒYŠÈQrtg£rdV{m_÷jábpÓ€ÉvsÖTÜu÷¬¸`â‘ãi2„šìƒÏj«zCm