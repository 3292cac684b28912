Bfinal_output_stateJ
фънрх
яту