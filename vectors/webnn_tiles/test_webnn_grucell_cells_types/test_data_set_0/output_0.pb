
BoutputHiddenJë³M¯U´.®a'ï¬Ç´£®±8†4