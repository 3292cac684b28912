B	initial_hJK°É½DÅ
¶KíÄ