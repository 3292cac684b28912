BYJ
s~wr›ƒ†Žsq