Bfinal_output_stateJ
ïŞü(ë