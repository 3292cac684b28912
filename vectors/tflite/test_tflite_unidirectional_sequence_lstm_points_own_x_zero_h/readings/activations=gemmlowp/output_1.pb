Bfinal_output_stateJ
яднэОъчън