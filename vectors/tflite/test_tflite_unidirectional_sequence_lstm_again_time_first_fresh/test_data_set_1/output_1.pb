Bfinal_output_stateJ
ת‎ילû‎Þמ