"""Sources: readers for the formats in which corpora come.

It offers one interface for all of them (`sources`), fairseq's data-bin folders (`data_bin`), data sets of TensorFlow Datasets
(`tfds_records`), and a generated translation task that needs no download (`toy`).
"""
