BY_hJ
ã¶K$)MK2l,