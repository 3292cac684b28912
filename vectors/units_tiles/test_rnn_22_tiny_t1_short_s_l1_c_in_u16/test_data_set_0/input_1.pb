BWJ
3d^©GrwEGÓ