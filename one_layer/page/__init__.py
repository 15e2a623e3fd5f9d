"""A ticket as one HTML file that computes in the browser: `text` and `engine` mirror the program, `view` is what one sees."""
