Bfinal_cell_stateJhэ:;ь‘я31эwьоя
