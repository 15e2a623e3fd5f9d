"""Classification of texts and pairs of texts: the files and scores of GLUE tasks, and the trained classifier that users call."""
