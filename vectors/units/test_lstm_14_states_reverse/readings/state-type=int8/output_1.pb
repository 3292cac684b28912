BY_hJ
á7Epù{)/ZK