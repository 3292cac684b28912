
B	initial_hJ¨·1 µ!·3´546V±5ì¤Ù6H4D°x¶h6