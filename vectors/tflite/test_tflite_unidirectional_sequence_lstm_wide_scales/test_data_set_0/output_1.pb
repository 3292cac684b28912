Bfinal_output_stateJHÅùœóB7sø¤NøúBşëFEãáÂÚñ÷±¼ş¼ÍØ
ŞGİú¡dÇøIÔ$"	’sü ÿßDÛ=ƒ^üà.ã'