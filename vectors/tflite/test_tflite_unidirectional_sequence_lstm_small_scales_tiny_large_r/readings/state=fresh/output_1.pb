Bfinal_output_stateJ
утнтрцсву