	BpeepholeWeightJHá²¿¤A?tT¾>&o®½*÷>?.ž½l[>uW?µ/Y?0ÒO¿eÑ?S®f?åu?ì½¾2-?
9h¿,ð>