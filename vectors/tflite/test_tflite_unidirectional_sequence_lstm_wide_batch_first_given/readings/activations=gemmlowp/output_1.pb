Bfinal_output_stateJe³æØê×‚ØhÅ
ı