Bfinal_output_stateJ
בלדלחתתףפ