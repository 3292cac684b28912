Bfinal_output_stateJ
ûûºùO¨çû