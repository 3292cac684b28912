Bfinal_output_stateJ
וחק‏ףתשצ