Binitial_hidden_stateJPë2è=sç–>þû(=Õº¹¼C©º>ph®>ªr¾UMF=¹¶Ý¾èë>é·>éP>Ox¾æ«>††ò¾¼’]¾ˆñ“¾
ØT>R>µE¾