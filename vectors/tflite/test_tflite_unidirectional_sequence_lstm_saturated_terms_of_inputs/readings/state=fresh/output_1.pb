Bfinal_output_stateJõûİûûH
ö›ºìæû