BYJ
T7Æ…ShUÀeX