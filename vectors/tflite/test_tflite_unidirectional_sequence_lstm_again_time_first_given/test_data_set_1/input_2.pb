B
cell_stateJMóH$ù)å(þá"Ù5ï÷ø