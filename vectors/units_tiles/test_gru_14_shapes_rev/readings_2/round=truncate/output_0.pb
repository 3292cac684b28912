BYJ
T7Æ…SgT¿dX