BY_hJ@½}Û`/u‘oÜqÍW«€gwm‰‹=te‘€«rº\w
}PJUŽs]tjoƒ¦…¯Ýfˆ––™Bs˜»eÇu