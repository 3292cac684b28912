Bfinal_output_stateJ
οζερώυό