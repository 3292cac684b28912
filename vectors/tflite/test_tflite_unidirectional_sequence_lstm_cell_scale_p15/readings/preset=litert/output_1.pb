Bfinal_output_stateJ
'Ëþ
æû