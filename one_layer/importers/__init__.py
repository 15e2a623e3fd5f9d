"""Importers: convert models of other programs into this project's variables, and back.

It offers fairseq's checkpoints, options and dictionaries (`fairseq*`), RoBERTa's embeddings (`roberta`), embeddings as text
(`text_embeddings`), and one function that finds a run's fixed tables in any of these (`embeddings`). `engines` writes models for other
engines: CTranslate2 (`ctranslate2*`) and Hugging Face's transformers (`huggingface`).
"""
