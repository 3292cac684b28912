B
outputCellJ<5¥¾G¨U¿fö¼>