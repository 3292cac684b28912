Bfinal_cell_stateJ±ú'şVòŸÜ€ÿ
Ô/ 