
Bpresent_stateJxõEs¾ö@HCÂVCŠ6‡2ü°Â¾Ö:	¶¥ÁR;“½ÏXÍAEÒJÑ.D¾Ï‡Ï5;cÎéÎ¨=QSRpÄoImL5»&Ã!ÈN@?I@@G»{FÏ¼ëÊ+ÐPBBBF˜G¹ÀEÇ»é=P±=HîÃ'Æñ@È¦Å