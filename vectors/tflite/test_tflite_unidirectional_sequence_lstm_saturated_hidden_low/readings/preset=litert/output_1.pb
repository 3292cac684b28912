Bfinal_output_stateJ
€€Ý€€È€…€‹