	B
cell_stateJ6ŠJ—8FÌ1l›ôùyx­äª*®Úù-è¯GøË¦v»(©òÒ@!d_šÃ‡.LKrõÔÓ