"""The tasks by name, without importing them: the class of each in its folder, and what its models do with raw lines."""

KNOWN = {
    "translation": ("Translation", "translate"),
    "classification": ("Classification", "classify"),
    "causal_lm": ("CausalLM", "generate"),
    "masked_lm": ("MaskedLM", "fill"),
}
VERBS = tuple(verb for _, verb in KNOWN.values())
