"""What is said to people: words, notes, and how a terminal shows them."""
