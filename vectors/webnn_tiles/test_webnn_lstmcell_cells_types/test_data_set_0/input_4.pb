
B	cellStateJG¸ë´š=T8Ó½œ½¤<õ-Å¼š±