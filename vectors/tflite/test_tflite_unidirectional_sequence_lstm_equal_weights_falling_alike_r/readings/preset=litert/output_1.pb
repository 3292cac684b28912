Bfinal_output_stateJ
τΪγκοξ