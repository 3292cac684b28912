B	initial_hJŒ¸½\Hø¾ò¾
U¾