B
cell_stateJ<ãf!Àj:Ñqr¥