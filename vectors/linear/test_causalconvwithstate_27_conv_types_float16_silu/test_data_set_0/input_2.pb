
BbiasJ
R³·´!-¬³A²