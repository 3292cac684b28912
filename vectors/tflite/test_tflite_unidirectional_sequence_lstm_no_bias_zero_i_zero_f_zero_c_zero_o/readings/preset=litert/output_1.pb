Bfinal_output_stateJ
όυχυψρωÿδ