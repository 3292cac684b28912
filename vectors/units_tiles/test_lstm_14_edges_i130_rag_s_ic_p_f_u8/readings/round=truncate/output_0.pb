BYJ
s}wrš‚…Žrq