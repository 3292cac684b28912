Bfinal_cell_stateJñ
¬
	S
lî
©
P
i