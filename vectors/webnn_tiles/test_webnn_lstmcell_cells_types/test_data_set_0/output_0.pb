
BoutputHiddenJü/F®W4¬Ü°µÒ/90JµC®