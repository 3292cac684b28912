BXJ
@baÛ}K[N©