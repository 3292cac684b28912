B
cell_stateJ@	˜í–löM¥@åm ·o