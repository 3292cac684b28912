Bfinal_output_stateJ
†€…•€’Œ€Á‡