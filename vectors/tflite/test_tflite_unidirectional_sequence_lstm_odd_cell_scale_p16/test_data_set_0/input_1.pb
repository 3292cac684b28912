B
cell_stateJ}ÿj	`‘¯+Üg¡êÌ{Y