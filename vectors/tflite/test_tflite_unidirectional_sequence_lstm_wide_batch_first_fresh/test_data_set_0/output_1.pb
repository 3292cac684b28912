Bfinal_output_stateJv­şäÑëÂ	
û?÷Èmü