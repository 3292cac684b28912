BY_hJ(hz
ƒµyy{¦w¦w]zfxÛƒ¦wæqwós.vãub}W~°€WzT~