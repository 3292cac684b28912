B
outputCellJª¡‚¿‡~ì¼æ;&?ºÓ„>n_f?uµº=