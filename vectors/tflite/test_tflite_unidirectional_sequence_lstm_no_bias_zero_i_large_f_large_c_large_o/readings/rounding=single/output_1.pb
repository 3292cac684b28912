Bfinal_output_stateJ
Щ!-чк-е