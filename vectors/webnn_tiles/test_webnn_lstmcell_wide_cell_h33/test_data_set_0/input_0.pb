
BinputJn¹i:è*+4h¥£½|¼FA¾´£;