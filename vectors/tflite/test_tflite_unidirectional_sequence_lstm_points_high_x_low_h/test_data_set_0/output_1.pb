Bfinal_output_stateJ
€€Š›€é€¶