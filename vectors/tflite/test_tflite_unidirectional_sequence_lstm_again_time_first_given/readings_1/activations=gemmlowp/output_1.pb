Bfinal_output_stateJ
לûûיתמֽרתü