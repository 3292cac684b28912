	
B	initial_hJ$¸¶,0g¶G7w3´8+J¯Y3÷·T¶é·™ª3·*7z²M5