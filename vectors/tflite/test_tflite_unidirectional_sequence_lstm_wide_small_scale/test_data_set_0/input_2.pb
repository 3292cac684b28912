B
cell_stateJ )a!■сс╣иJє/М