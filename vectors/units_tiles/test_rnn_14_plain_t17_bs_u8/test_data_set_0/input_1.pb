B	initial_hJi ½
¾êû–½’~”¾