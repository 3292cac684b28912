Bfinal_output_stateJ
üי'עטרךר