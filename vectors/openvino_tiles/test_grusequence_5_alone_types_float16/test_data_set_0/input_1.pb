
Binitial_hidden_stateJ_µ~4®4Ä°-!¯K·Ò±Ú°'¶