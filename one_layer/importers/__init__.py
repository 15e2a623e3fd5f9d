"""Models of other programs as this project's variables, and back."""
