	BY_hJ6*qunM{ÞxxÆxyòvÏwöp*n±y3vnvyy¹w0uðp£oûxFw®uPy
yx0u