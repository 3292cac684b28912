Bfinal_output_stateJ
`è\`çj