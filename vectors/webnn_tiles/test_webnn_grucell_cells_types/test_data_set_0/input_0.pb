
BinputJ)94'´†¼