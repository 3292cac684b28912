BY_hJ
l²m¤6j«|‰x