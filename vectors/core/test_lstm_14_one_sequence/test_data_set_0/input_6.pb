B	initial_cJ
·=@ј>ў=уѕМы=ZMё=