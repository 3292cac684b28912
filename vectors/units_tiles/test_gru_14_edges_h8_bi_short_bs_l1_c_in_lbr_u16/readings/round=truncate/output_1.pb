BY_hJ€ö‡¶„Ša<kŒYÐ€|Ž—‘
Tê´çU—l&]3w´Nq~€%tïo¬^w™PdI”ÆgZMX:›1d…–Ê•hµ&}±«QWº'[œ©o‘Qdj­ïRŒûkØ“Lt'ŽkH‡Hy‘ó[F“5q €/z¬­Ld¤SsTü©Di