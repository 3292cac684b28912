BY_hJ¯vğuçtYs:tÊuèsqv+uuu
vGu©vÔrÛs