	
Binitial_hidden_stateJHË™v∑B)¥∏≥å∂D∂é6c->4"3∏µ4≤§≤Yµ8µ,∂°≠∞e∑)¨∂∞»0ß∂&-ê∑Ì∂FµK∑Æ∂C7h∑w6≠/