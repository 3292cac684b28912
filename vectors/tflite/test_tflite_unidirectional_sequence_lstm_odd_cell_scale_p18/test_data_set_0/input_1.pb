B
cell_stateJŽdY“$ª+_$U¸H¤)SGlÖL