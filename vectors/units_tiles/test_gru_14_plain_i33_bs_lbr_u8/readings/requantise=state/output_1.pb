BY_hJ
m²n¥6k«|Šx