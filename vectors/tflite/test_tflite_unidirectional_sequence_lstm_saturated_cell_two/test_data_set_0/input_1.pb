B
cell_stateJ 182Sló’’Ÿîœ7è(‚+«4ÓZc/ÖH,Ÿi