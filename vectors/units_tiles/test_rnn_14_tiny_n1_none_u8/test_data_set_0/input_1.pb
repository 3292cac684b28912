BWJ
©I­L6¶eI[l