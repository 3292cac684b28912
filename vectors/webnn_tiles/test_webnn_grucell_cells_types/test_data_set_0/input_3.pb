
BhiddenStateJ­Ö´çµ<²0³´æµi6707