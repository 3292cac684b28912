Bfinal_output_stateJ
îõúíòÊùúÿ