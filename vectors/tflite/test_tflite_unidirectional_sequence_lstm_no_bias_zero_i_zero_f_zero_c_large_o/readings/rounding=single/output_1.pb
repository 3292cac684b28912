Bfinal_output_stateJ
פתםנפ
ÿףף