
BoutputHiddenJ%4e©Ô±a´B3­{-(1Ó±x©