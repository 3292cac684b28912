
BHoJÓ∞U∏sù*S-∆&