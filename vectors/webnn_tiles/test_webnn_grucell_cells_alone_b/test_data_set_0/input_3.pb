BhiddenStateJ(ñ»ñ¾œ™>:I>#z¾æ/½±ºÌ;Hê>aU¾œ
ë½'§š>