Bfinal_output_stateJöûÚûûH
ö›ºìäû