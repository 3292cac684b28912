B
cell_stateJАх¶еpбDЪёзџЫdае