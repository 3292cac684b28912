Bfinal_output_stateJ
Ø¸
ùðòæ