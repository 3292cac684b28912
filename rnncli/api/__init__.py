"""What a program imports, and what other tools load: `rnncli` names it all."""
