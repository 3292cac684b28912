BY_hJ
â7Epùy)/\K