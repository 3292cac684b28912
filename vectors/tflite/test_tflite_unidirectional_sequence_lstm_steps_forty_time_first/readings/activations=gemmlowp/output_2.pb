Bfinal_cell_stateJIצ•
˜Vשû‹¡ûלק