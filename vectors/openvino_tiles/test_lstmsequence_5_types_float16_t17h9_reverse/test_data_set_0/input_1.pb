	
Binitial_hidden_stateJ$P¯Š.‘®22/´–²®´·e´µb¶²]0Þ›Ëª©«.˜·