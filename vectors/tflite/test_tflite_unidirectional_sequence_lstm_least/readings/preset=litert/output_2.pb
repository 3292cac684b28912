Bfinal_cell_stateJò
´
_
në
®
X
h