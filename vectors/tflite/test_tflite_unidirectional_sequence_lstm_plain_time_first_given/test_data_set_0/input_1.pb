Boutput_stateJ
ÛNå:-òËÉK