B
outputCellJ Ï>4«Ø½<e??ê(>‚bî¾·iV?‡\j½¦‘2½