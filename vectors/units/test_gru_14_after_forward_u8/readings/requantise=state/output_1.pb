BY_hJ
`Gfz|«¡~´P