Bfinal_output_stateJ
χύψÿÿψ