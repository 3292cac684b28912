B
outputCellJ(B“?Ó†h?¬@Õ>$x¿øqŸ>aE"¿…#0¾}è¿&n=!Òu¿