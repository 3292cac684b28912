Bfinal_cell_stateJCצ™
S•שû‹£ûלק