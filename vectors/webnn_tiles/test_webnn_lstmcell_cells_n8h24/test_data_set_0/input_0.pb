BinputJ`âOé?IXeæJ√æ9¥$øaZö?süâ>ƒK?8«
?gbjøIsøjHÍºà∏søÑ{9?HeB?K©àø	—¿´¿L¸ñ>Gˆ®øÈ®⁄?TM“>8Ñ?p?’’ºΩ