B
cell_stateJ–>4þãÛ¨óPTÖ1SËwŸ_¡