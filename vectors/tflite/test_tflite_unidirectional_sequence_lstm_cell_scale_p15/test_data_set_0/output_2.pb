Bfinal_cell_stateJ
†p—OME‚C‹©w>êÿ†