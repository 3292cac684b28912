Bfinal_output_stateJ
ϊΑÒώνδχόν