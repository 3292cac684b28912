
BoutputHiddenJv¥ØF£È,4°˜,û(ç+Ô1_­