Bfinal_cell_stateJќbqсIш­юNх3
Еь·'^иfзяда0У