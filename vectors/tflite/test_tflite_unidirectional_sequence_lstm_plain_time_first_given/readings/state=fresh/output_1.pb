Bfinal_output_stateJ
ךקüָ
ליD‏