B
outputCellJ("m6?■пы>W	3>э°А=▐T─?╣Ци╬╫╬J╫uIZ©y╣А╬*5╬