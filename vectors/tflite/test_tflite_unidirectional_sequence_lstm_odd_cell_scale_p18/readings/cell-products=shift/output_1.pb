Bfinal_output_stateJ
÷üûüûö÷õûı