
BinitialHiddenStateJ.@5:0‰°Î74^4e77³¶414=¶O³0²92