Bfinal_output_stateJ$¾8úû-
õßØÏìü	ÅÙ£DEÙ!¬úı