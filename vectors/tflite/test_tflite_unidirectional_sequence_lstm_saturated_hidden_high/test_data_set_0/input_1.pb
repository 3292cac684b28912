B
cell_stateJ+u÷šøŠöƒ.1Ì±pç'°XÑ