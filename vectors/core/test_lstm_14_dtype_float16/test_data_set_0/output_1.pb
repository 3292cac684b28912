
BY_hJù©Ñ-n1l0Xª˜¬w¨ 2b©c°Ü®k+q/w¬N©