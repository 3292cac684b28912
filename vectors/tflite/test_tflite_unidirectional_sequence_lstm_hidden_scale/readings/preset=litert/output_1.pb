Bfinal_output_stateJ
תשפף	üי