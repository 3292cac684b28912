Bfinal_output_stateJ
שמָ*גמיüÚü