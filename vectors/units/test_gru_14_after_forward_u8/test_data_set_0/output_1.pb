BY_hJ
aGgz|ª¡~´P