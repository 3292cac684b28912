BoutputHiddenJ(¦>{¾H™ü=wü˜>S%¿L…V>”î
?ŽT¾‡€>Ø/¢>‚Ÿ•>