Boutput_stateJ
)ôRHRW¡!T