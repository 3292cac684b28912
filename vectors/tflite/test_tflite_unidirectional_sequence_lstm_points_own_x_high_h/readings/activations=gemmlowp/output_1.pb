Bfinal_output_stateJ
zk|}m{