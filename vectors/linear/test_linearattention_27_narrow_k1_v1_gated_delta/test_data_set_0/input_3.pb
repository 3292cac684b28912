B
past_stateJíV?öç¿İ¾£¾