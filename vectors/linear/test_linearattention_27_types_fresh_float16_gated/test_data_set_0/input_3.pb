
BdecayJö³t¹ü¹Ô¹B¸Ú¸