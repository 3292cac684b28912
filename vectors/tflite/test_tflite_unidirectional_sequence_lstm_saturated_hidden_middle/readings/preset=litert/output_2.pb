Bfinal_cell_stateJ±ú'şXòŸÜ€ÿ
Ñ/