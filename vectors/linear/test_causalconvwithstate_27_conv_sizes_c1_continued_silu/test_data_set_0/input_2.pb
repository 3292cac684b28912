B
past_stateJ/²L>&aM?Ý@¾Õ<·¿0Ë”>ý°>