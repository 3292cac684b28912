Bfinal_cell_stateJ±ú'şWòŸÜ€ÿ
Ô/ 