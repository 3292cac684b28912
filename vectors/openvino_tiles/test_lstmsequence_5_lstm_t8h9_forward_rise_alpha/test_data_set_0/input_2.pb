	Binitial_cell_stateJHφV¤Ώ`bΧ>ιά	?Ρ3Ώ4zΩΏ]§ΏLu8Ώp„>ƒςl?ς
?#!Ώ26’½Α‡ΪΏFΠTΏ–)0ΎY™ΐΐ>gY:>