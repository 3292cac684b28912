B
cell_stateJGБаХщІь=\ј>гKьРnбsщ