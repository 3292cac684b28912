
Binitial_hidden_stateJE+m6¯êµl3ð´ˆ®¢²Ó6¨µ