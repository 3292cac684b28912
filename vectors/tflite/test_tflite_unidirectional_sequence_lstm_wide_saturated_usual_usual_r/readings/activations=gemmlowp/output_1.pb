Bfinal_output_stateJ(
Gú5(Æñ£¿80&A÷&ž¢‘