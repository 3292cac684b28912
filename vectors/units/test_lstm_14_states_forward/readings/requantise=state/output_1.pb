BY_hJ
…‰RVZn‹