BinputJDLá?áE
²c<N8U:HÌ^WëÑT