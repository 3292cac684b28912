B
outputCellJ(’I”>อน‘พWaฟ>4สฑ>กวm=C'ูฝห)?,€@ฟJxพ๘มฝ