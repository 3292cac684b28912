Bfinal_cell_stateJ@*Lô(¤ó‘ìaâÀÕ¸à÷ºSü˜øÀÕë
