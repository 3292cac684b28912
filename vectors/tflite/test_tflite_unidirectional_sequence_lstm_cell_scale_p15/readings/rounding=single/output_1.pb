Bfinal_output_stateJ
'Ìþ
æû