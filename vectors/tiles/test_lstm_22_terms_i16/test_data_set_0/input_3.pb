B	initial_hJBR¤¾¦
ï>áäá½ïC>l-¦½Åt¾