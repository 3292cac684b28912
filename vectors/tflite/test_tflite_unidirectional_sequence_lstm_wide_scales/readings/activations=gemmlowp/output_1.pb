Bfinal_output_stateJHÈùóK7pø£QøúBşëF?ãçÂÜù÷®´ş¹ÔØŞMİúd½øHÔ#"
’rü¤ÿßDâ=‹_üà2ã$