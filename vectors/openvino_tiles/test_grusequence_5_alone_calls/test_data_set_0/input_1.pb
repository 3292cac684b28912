Binitial_hidden_stateJ(Ö,º>Üù=x¶€>î²r½¦œæ=Og‚>¿Åd¾žˆ
¾ùXù¾}>