B
cell_stateJG0îea°(:Ý10s[
’*