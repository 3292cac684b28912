
Bpresent_stateJ;ÈÅF€M