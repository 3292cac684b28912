BY_hJ
â¶K$)MJ2k,