Bfinal_output_stateJ
Ë:¬t;Ñ—_A