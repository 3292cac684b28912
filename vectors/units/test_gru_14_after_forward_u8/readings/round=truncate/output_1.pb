BY_hJ
`Gfy|ª¡}³P