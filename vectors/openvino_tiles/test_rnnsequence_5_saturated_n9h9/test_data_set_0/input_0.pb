	BXJÜô-DoÉDM—Å¨Dˆ–UÃëŽ.ÄÝê*C‚–Cƒ¤ÄªˆÄÃKpD£2yÄÑÓCÃ©\Ä öÃCèóÂ×ûVÂ–
tÄ÷ ¸Äb:	C¢.£Cå¦»Ãç©C‘ôXÄxND#HDE%[DÑDg³B³¹Dy$üB>ÈÄB5\Ä€dDxsÄuoÚC