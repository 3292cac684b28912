BhiddenStateJ(
€¾êZ¼=J»¾/n`>Ž„ð>}³¾‹ØÎ¾ÑEn¾oÁ>ù †<