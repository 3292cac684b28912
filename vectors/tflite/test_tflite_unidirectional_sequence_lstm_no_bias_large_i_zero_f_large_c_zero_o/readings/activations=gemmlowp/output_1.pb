Bfinal_output_stateJ

ùçÊ