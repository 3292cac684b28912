
BdecayJY¹‰¸ °Ö¶S·è±