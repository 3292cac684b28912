Bfinal_output_stateJ
üéşúüÍıÒ