B
cell_stateJhæúÓğè5âÍñ–îÊéX"