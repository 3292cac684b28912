Binitial_hidden_stateJ@°‡L>ØÛ>Œ S¾²„¸»0”>àF»(ØÌ>y)s>")
=¢’,¾{ve>c;ì¾ÓÀÍ¾*¾ê@²>ZÍI¾