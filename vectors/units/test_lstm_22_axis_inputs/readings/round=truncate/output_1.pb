BY_hJ
myv“†ˆif