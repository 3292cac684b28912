B
cell_stateJŒ‹	½Á´ñŠ»½	Æ7TkšH