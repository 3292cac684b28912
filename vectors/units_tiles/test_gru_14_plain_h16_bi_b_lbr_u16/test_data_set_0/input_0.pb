BXJ@U®tdvÖªÂzÙL‘Ioh½¯éyf©Î”ôg– Î‚
–ÞtÙ³×h?Ôšˆ‘r~}ùŠšJ„gI˜.–Luž¤@w