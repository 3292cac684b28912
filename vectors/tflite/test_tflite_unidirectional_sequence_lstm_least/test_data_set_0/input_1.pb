Boutput_stateJ
‚‚€‚€€