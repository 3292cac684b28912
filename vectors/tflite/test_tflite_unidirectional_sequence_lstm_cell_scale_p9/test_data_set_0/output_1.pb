Bfinal_output_stateJ
õ/ğ:Óüí