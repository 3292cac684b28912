B
cell_stateJѓэ}шoЈн	0а~п÷цэтDн