B
outputCellJ |dò¾x>Q‰>ÅU?¾S²=”Âö;”XØ¾Œá°<