B
cell_stateJÏöP+õìØìuşôıŒú