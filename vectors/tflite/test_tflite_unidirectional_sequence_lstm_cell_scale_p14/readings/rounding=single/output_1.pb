Bfinal_output_stateJ
áÿÿù6õýú