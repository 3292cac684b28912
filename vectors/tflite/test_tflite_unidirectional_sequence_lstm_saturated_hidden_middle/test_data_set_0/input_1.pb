B
cell_stateJMÅæ®(ŞÿÁV¿Ô½o3|