BY_hJ
à7Dnùz).[J