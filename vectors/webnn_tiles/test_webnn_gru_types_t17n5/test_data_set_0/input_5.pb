
BinitialHiddenStateJµ5È5³¤4´°µý°‘+õ·5²'´µA7
¶ª¶