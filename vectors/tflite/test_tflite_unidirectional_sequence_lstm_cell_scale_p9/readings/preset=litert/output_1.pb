Bfinal_output_stateJ
õ0ğ:Óüí