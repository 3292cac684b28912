Bfinal_cell_stateJ@*Oô+¦óìaâÀÕ¶àõ»Sü øÀÕö
