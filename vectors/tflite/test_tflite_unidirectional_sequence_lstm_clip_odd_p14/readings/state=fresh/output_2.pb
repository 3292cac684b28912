Bfinal_cell_stateJ”
ñÁòê÷1şÌõı
²üÑ%kêMæ¾åuàFÓ