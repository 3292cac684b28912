
Bpresent_stateJxë>ÌÐQó8¹RäÓòÂÇ­D]@ØÒT#ÆãS½Ô¿ÏA(ºá³#>Bw­$š½ƒ4ÍÆ7Èe1T7{ÅäBÂUšV×ÃŸÑÓ7CÏN£PŠÄxÐ´ÐMBÙQÄRBÁÀf*G=±ÅôÅa@¬Fe¼CÀ—Ç{Â½ÀTÁ+<