BY_hJ¯vğuçt|s:tÊuèsqv+uuu
vGu©vÔrÛs