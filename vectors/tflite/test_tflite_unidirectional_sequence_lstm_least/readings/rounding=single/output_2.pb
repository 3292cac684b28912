Bfinal_cell_stateJò
¶
_
pë
®
X
i