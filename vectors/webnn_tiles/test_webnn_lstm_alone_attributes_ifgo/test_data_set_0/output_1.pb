B
outputCellJ(€Ö·¼£	)½v¬U¿Tïr¾²2¾l
ó<}é=ÆþV»ES’=22§=