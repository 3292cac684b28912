Boutput_stateJ
íİ,Çëó<ì<