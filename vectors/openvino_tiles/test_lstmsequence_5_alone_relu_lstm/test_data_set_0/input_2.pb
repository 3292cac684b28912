Binitial_cell_stateJ(V6.?²
¾øb¿É@q¿Â¿º*1¾ºA?sŠ*?Áß÷=À