Bfinal_output_stateJ
ўцаасэ