B
cell_stateJх—тъё@3dbЪNncGY