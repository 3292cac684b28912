B	initial_cJ(4˜¿ôH%¿ýo#?[é¨¿¶´m?:P¾òuF¿‘ž¾/L
ÀMsPÀ