Boutput_stateJ
ΡMΞµ¶ρί<X