"""The toy translation task, generated from a small grammar, so that a run needs no download.

`grammar` draws sentences, `clause` writes a clause in German and in English, and `lexicon` holds the words.
"""
