"""Translation: beam search, BLEU, and the trained translation model that Python and the command line use."""
