Binitial_hidden_stateJ(uI¦>ïä>ñšÍ¾ôw•¾úÐÌ¾zëºoó><ø>iƒ=c
H>