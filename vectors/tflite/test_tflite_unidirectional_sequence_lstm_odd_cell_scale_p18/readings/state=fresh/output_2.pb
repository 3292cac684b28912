Bfinal_cell_stateJŠŠ\Kÿ} io‘r
_¸DÃ±ÉM