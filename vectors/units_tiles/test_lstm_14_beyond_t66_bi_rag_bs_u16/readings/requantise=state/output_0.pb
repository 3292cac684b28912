BBYJ Z)Ng$cd¢ö†˜‡UCà}u|³]‹
†Iq
‡\e9Ž”z|o[}Ú—øeK‰œV¡]„H^oËŒjdÌ…—zz}‚Èq+„)k^}• xð{^x
…uŒhƒ°—Özp‚2€.7En@Ä ªÁØ4÷‚P~µqgúˆèpŽÃl*y-O¡|Ç—Cá†Q°|øoŒr£oU…‚mÉÌlî~|u]¿€fŽ©z	ŒvIçƒÙs­Tui˜0r×ˆ{BeqoÌrh³Œ}c_ÞU_Ž)zxžcñŠseÄŽ»]•E…–pÉ\H—k0ŠID—Ÿ‰ë{è_ªˆµd…Œe›*¼€½bÐonZgU“ŠÄ€>lós‹‡s‹¹fCzzÖeŒŒ£€8oz‹Xo{•.h~'ƒ.“¿k‚”L’Éx‰xprøŽ\rã™WˆžHƒß‚àlåœuƒž}CšˆÎ}RPrÓ±ªé‰10‡î‰xeudH¸c¡ã†Ô2e~{ûijŽh…ƒ–q_8Žökmay
ŸKŒÞ–Ó=
†Ú{»KsxÆ­ ¦M‰±2Æ‚–{Ò4wl>ÀªÒ‚/‡_uUˆ]Ð¥ü€ù…Mù}`s~xhÆ„èké‰¼}õƒ^yácf»‘Š}²qH&‚zvÕ`Æj»e|vŒlK­†2w˜gM_žŒy\OB~ütfÍxL‹‚{ŒpZ±‚µuPgvœ‹~>†³I­ŠƒoCk·e‹ÀlL‡zbB|lt0w¸r„=l/…pƒÿÀvfÀvðÀz˜ˆ5]¦ˆ${+edÕ”Ü}‹…n\vkvçrÚŽB„¡{å‚%€„z0FË„h©‹¯€ÖG¬|wÙivn\‘p{«md›{_~m”)‚pRf'ŽnuZyþo•ˆw‚œùfkv{|;ß“×ªb¡‡1/dˆ‡paX…†¥¢¦ŽB:·„|slYÞ…\’S‡DúIÐƒÚs‚O—™ÍˆJŒ[Fÿ~ìoV^ÖŠóŒÖ|$‘ïV<}mkˆm<àú}Ø˜éU°‰Î{é^iŠ¯È–„‹ô5®†Ô†”Wê]B¼Ì—Xƒß2=•ïŽÐsà]gøoóˆ½]5’£”r¼Z¥˜uyn°_+wù|¹xÖÆXm
xh}5zÓlƒ”´„IsƒŠK€]yMvœeWƒƒ¯}>Žƒ{v uzfížk„Q‡“¦sëƒŠw6@ú§Ç­ÿš“†:=ó‰Rt(R˜ £„á‡ÅUÙwJsvžå…ÎrÔ¢†ŽbrL|“˜§†$šVQí„J~d@q¹¬@…o3E‚PwÀk“n€—J’á‘IXfƒ¹~;Å_ýÆê¸/Ž/Á,{Ñ:Ìn¥¯NŸîMS