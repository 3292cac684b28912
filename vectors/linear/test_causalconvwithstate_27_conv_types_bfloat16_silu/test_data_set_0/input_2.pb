BbiasJ
'>©¾F¾—½F½