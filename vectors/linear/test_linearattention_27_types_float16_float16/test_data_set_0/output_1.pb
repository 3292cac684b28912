
Bpresent_stateJxõEs¾÷@HDÂWC‡6‹2ù°Â¾Ö:
¶¦ÁR;”½ÏWÍ@EÒIÑ-D¾Ï…Ï-;cÎèÎ¡=QSRnÄpImL5»'Ã!ÈM@?J@@D»}FÎ¼íÊ+ÐQBBBF˜G¹ÀEÎ»î=<±=HùÃ*Æô@ÈªÅ