BoutputSequenceJŠÄ¾ÌŸ®>è\¾A
k=