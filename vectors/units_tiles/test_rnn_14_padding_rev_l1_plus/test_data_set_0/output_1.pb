BY_hJ(hz
Éµyy{¶w¶w]zfx€É¶w0u0u0u0u0ub}W~∞ÄWzT~