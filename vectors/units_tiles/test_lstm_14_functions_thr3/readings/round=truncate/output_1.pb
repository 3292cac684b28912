	BY_hJ6³zIzwfzY€0u0uyô{xyë~Þ}Ÿ‡‡}Øy²x0upzXzs}g{
€»yjx4zwÿz