"""Importers: convert models of other programs into this project's variables, and models for other programs.

It reads fairseq's checkpoints (`fairseq*`) and folders of Hugging Face (`roberta`, `llama`, `gpt2`), whose names and shapes `parameters`
compares. `embeddings` finds a run's fixed tables in these or in text. `engines` writes models for CTranslate2 (`ctranslate2`) and Hugging
Face's transformers (`huggingface`).
"""
