BY_hJrËmptjrq¯tÄušqÊo…k~jjmÃq¥nço¬@núkâ€mNmsbmSoƒqq
m…xs>p²i£u|OmX†k¡snl?p@jlÇsZnxıitzalEo^k-ktbk-vu{