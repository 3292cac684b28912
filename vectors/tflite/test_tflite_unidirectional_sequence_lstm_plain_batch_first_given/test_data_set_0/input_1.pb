Boutput_stateJ
c1»W _¼·