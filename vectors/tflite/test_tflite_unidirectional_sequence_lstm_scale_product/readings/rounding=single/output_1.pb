Bfinal_output_stateJ$¾8úû-
õàØÏìüÅÙ£DFÙ"¬úı