
BbiasJ
h¨_¢±¶Ð·+ 