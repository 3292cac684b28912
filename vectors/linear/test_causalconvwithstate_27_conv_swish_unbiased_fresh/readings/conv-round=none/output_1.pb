Bpresent_stateJH\KÖ¾‘÷¾„E8¾j‚¨>?(q?#¤?K‰Ë¿|¬
>zŒs?Î­U>ãg ¿ÏH*?E ¿ÙP¿CÕ¿‹w×¿hTU=„Œ¿