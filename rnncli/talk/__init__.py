"""What is said to people: words, reports, and how a terminal shows them."""
