
B	initial_cJ_)岜󋾯W=�=\@�