B
cell_stateJé±ÉFuÍ¶?ª’¯¾\c¿Ü×PŒU