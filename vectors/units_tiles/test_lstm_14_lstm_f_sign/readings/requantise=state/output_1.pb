	BY_hJ6+qvnN{ÞxxÇxyòvÏw÷p*n±y4vovyyºw0uðp¤oûxGw¯uQy
yx0u