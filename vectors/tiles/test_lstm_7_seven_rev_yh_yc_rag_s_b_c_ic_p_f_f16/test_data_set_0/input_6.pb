	
B	initial_cJ$C»€±²7æ¾ˆ­zd8¬6u61Ò»;HµQ³›:ãÀ77