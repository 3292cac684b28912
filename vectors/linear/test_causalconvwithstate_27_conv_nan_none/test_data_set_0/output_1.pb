Bpresent_stateJ0–
@ã¬£?qÖ?Cæo?í¯?—ˆ]¿]„³¿—3L>£Š=émQ¿oZ@@GÉ¾