BY_hJ<Àrqvw™qÐzpyÉ{·uŽ{ÔtpwözäpJyªrxzó{0yótRtŽzwÕ{úm«p)yW|ýr
x