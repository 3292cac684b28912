BoutputHiddenJŠÄ¾ÌŸ®>è\¾A
k=