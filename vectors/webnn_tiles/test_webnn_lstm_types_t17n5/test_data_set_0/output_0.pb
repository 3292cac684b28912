
BoutputHiddenJÛ4@°ë³â$[°f³E,Â0ë°×>©"°Š70ª