Bfinal_output_stateJ
ØïBñŞÍûï