B
cell_stateJ╠р│О5$сVхусuВ╫щу@╙