BY_hJ<Àrqvw™qÐzpyÉ{·uŽ{ÔtpwözäpKyªrxzô{1yòtRtŽzwÕ{úm«p)yW|ýr
x