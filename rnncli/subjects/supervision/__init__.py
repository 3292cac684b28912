"""Programs and processes that end with their use: a supervisor, and what is said to them."""
