Boutput_stateJ
¥Õû4%Ç¼Éû