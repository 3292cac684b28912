
BhiddenStateJ|5¤¶Y²„3U6.2Ø*4î5±6