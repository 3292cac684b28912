BY_hJ
„ˆR~UZm‹