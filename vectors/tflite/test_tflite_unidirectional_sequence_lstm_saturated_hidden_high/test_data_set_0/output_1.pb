Bfinal_output_stateJ
"å0ÏùÖ