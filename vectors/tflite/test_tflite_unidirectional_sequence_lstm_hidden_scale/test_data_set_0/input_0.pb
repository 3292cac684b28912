BinputJ
K_BZ57ñÓ¢áÑ¦ºÿ4V½SFìé