Bfinal_output_stateJ)
Sú<(Éñ¥º8&&=÷)ž³‘