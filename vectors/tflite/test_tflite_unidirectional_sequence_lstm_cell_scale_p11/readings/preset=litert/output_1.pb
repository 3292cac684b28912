Bfinal_output_stateJ
Õ¸	$ùí÷ì