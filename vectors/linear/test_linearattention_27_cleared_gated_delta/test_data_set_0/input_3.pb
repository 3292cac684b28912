B
past_stateJ0ú’>D­­<ym?·Gß>®x>mJÀÝ‹Ä?AD¿)s>º¿»¿V³9»[°µ¾