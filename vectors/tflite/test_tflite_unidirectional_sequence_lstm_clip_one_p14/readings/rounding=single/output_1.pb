Bfinal_output_stateJöÅ§
ãûêõøçÙ