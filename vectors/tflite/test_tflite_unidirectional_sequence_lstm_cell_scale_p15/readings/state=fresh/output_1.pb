Bfinal_output_stateJ
)Êý
æû