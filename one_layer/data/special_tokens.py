"""The ids of the special tokens, the same in every vocabulary (as in fairseq and RoBERTa)."""

BOS, PAD, EOS, UNK = 0, 1, 2, 3
