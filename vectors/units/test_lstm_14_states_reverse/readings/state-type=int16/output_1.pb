BY_hJ
à8Eoùz*/[J