Boutput_stateJ
¤+ÅGÒş"ç!