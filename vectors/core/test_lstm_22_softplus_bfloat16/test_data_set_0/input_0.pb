BXJ$­C$ÄªCWÃpBÐB.ÃÃˆCbÃ·ChC
ÃC›@³BGÃ¯Ã