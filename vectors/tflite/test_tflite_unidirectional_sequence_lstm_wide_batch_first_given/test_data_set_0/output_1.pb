Bfinal_output_stateJh·æÑê×…Ø	hÆ
ù