	BXJHz‡¤iQl(u‘eµ¢y”¡ýiüŠÐpþ‚›¯‰¹@£ÔOÅ§zúx°‘M‚=|^U€âföqxz%j
»4·pÏšŽ÷zê