
BinputJêºa¾R<´¸