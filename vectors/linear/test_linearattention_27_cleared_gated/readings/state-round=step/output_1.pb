Bpresent_stateJ0×V`>’Ý½D4á¾Áè]>	âŒ?ZÒ
¿Š˜QÀ¤Ü¿†ã?@AB×»lä
¿èfÆ¾