Bfinal_cell_stateJò
´
^
pë
®
X
i