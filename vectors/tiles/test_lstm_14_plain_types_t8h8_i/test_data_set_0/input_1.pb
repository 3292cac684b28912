
B	initial_hJ56W´¦´¼²Ä5O¶ä5šµ