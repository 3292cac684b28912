B
outputCellJ╣D2?gВы>p║ю>