"""Sources: readers for the formats in which corpora come.

It offers one interface for all sources of pairs (`pairs`), tables (`table`), fairseq's data-bin folders (`data_bin`), data sets of
TensorFlow Datasets (`tfds_records`), a generated translation task that needs no download (`toy`), and sources made of others (`composed`).
Plain text for language models is in `plain_text` and `plain_parts`; labelled texts are in `one_layer.tasks.classification.corpus`.
"""
