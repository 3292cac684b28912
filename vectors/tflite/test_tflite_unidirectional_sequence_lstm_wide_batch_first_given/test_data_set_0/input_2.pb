B
cell_stateJ)מÍתכ [פV[û-‎Sqת