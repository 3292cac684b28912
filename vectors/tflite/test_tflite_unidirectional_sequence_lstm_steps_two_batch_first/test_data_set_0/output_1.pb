Bfinal_output_stateJ
øõ-öõıûñö