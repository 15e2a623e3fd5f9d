"""The tasks by name, without importing them: the class of each, and what its models do with raw lines."""

KNOWN = {
    "translation": ("translation.task.Translation", "translate"),
    "classification": ("classification.task.Classification", "classify"),
    "causal_lm": ("causal_lm.model.CausalLM", "generate"),
    "masked_lm": ("masked_lm.model.MaskedLM", "fill"),
}
VERBS = tuple(verb for _, verb in KNOWN.values())
