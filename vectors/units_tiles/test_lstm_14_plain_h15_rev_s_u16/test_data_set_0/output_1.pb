BY_hJ<“…)u…‚V}#v±i/´vU
v–U™lD³uÎ‹±’p—­bŒ“Av‰…‰q}sog®Š)‰‰q