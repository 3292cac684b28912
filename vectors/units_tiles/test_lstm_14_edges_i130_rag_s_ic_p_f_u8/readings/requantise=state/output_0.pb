BYJ
s~wr›ƒ†Žrq