BoutputJ2padlZ [coQúQ`è\_
d^ðgXô\Sða`çj